#include "eckart/io/open_shards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::uint64_t first_look = std::uint64_t{64} << 10U;
constexpr std::uint64_t always_told = std::uint64_t{1} << 20U;
// The tail is looked at for a hint, not measured: no more of the file than this is read.
constexpr std::uint64_t last_look = std::uint64_t{16} << 20U;
// A number's own last bytes may be zero: a run may begin a little before the tensor it stands in.
constexpr std::uint64_t widest_element = 8;

bool is_zero(std::byte byte) { return byte == std::byte{0}; }

// Zero bytes at the end, `limit` at most.
std::uint64_t zeros_at_end(std::span<const std::byte> bytes, std::uint64_t limit) {
  const auto tail = bytes.last(std::min<std::uint64_t>(bytes.size(), limit));
  const auto last = std::find_if_not(tail.rbegin(), tail.rend(), is_zero);
  return static_cast<std::uint64_t>(last - tail.rbegin());
}

}  // namespace

void check_tail(const SafetensorsFile& shard, Findings& findings) {
  const std::span<const std::byte> file = shard.file().bytes();
  if (shard.tensors().empty() || zeros_at_end(file, first_look) < first_look) return;
  const std::uint64_t zeros = zeros_at_end(file, last_look);
  const std::uint64_t begin = file.size() - zeros;
  // A tensor of zeros may be meant; one that begins with numbers and ends with zeros hardly is.
  const auto whole = [&](const StoredTensor& tensor) {
    return tensor.begin >= begin && tensor.begin - begin < widest_element;
  };
  const std::vector<StoredTensor>& tensors = shard.tensors();
  const bool is_cut_out = std::none_of(tensors.begin(), tensors.end(), whole);
  if (zeros < always_told && !is_cut_out) return;
  findings.add({.severity = Severity::warning,
                .file = shard.path(),
                .begin = begin,
                .end = file.size(),
                .rule = "zero_bytes",
                .message = fmt::format("the last {} bytes{} are all zero, as of a download that "
                                       "was given its room but not all its bytes",
                                       zeros, zeros == last_look ? " or more" : ""),
                .hint = "unless these tensors are meant to be zero, fetch the file again"});
}

}  // namespace eckart
