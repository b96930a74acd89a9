#include "eckart/io/zip.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>
#include <vector>

#include <zlib.h>

namespace eckart {
namespace {

constexpr std::size_t piece_bytes = 1 << 16;      // inflated at a time
constexpr std::size_t max_feed_bytes = 1U << 30;  // zlib counts in 32 bits

std::string hex8(std::uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

class Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  struct Step {
    int status = Z_OK;
    std::size_t taken = 0;
    std::size_t made = 0;
  };
  Step step(std::span<const std::byte> in, std::span<std::byte> out) {
    if (!ready_) return {Z_MEM_ERROR};
    const auto n_in = static_cast<uInt>(std::min(in.size(), max_feed_bytes));
    const auto n_out = static_cast<uInt>(out.size());
    // zlib's pointers are not const, but it does not write there.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
    stream_.avail_in = n_in;
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = n_out;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    return {status, n_in - stream_.avail_in, n_out - stream_.avail_out};
  }
  const char* message() const { return stream_.msg == nullptr ? "no reason given" : stream_.msg; }

 private:
  z_stream stream_{};
  bool ready_ = false;
};

// The bytes that went through, and their CRC-32.
struct Passed {
  std::uint64_t bytes = 0;
  std::uint32_t crc = 0;
};

void pass(Passed& passed, std::span<const std::byte> piece,
          const std::function<void(std::span<const std::byte>)>& sink) {
  passed.crc = static_cast<std::uint32_t>(
      crc32_z(passed.crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
  passed.bytes += piece.size();
  sink(piece);
}

std::string declared(const ZipContent& content) {
  return std::to_string(content.bytes) + " bytes that the directory declares";
}

std::optional<ZipFault> inflate_content(
    std::span<const std::byte> data, const ZipContent& content, std::uint64_t wanted,
    Passed& passed, const std::function<void(std::span<const std::byte>)>& sink) {
  Inflater inflater;
  std::vector<std::byte> piece(std::min<std::uint64_t>(piece_bytes, content.bytes + 1));
  std::uint64_t at = 0;
  while (true) {
    // A whole member is given one byte of room more than it declares, to see whether it ends.
    const bool is_whole = wanted == content.bytes;
    const std::uint64_t room = wanted - passed.bytes + (is_whole ? 1 : 0);
    if (room == 0) return std::nullopt;
    const Inflater::Step step = inflater.step(
        data.subspan(at), std::span(piece).first(std::min<std::uint64_t>(piece.size(), room)));
    at += step.taken;
    if (step.made > wanted - passed.bytes) {
      return ZipFault{"npz_size", "the member inflates to more than the " + declared(content)};
    }
    pass(passed, std::span<const std::byte>(piece).first(step.made), sink);
    if (step.status == Z_STREAM_END) break;
    if (step.status == Z_BUF_ERROR || (step.status == Z_OK && step.taken + step.made == 0)) {
      return ZipFault{"npz_deflate", "the compressed bytes end after " +
                                         std::to_string(passed.bytes) + " of the " +
                                         declared(content)};
    }
    if (step.status != Z_OK) {
      return ZipFault{"npz_deflate", "the compressed bytes are broken near byte " +
                                         std::to_string(content.data_begin + at) + ": " +
                                         inflater.message()};
    }
  }
  if (passed.bytes != wanted) {
    return ZipFault{"npz_size", "the member inflates to " + std::to_string(passed.bytes) +
                                    " bytes, but not to the " + declared(content)};
  }
  if (wanted == content.bytes && at != data.size()) {
    return ZipFault{"npz_size", "the compressed bytes end after " + std::to_string(at) + " of " +
                                    std::to_string(data.size())};
  }
  return std::nullopt;
}

}  // namespace

std::optional<ZipFault> read_zip_content(
    const ZipSource& source, const ZipContent& content, std::uint64_t wanted,
    const std::function<void(std::span<const std::byte>)>& sink) {
  const std::span<const std::byte> data =
      source.bytes.subspan(content.data_begin, content.compressed_bytes);
  Passed passed;
  if (content.deflated) {
    if (auto fault = inflate_content(data, content, wanted, passed, sink)) return fault;
  } else {
    pass(passed, data.first(wanted), sink);
  }
  if (wanted == content.bytes && passed.crc != content.crc32) {
    return ZipFault{"npz_crc", "the bytes have the CRC-32 " + hex8(passed.crc) +
                                   ", but the directory says " + hex8(content.crc32) +
                                   ": they are damaged"};
  }
  return std::nullopt;
}

}  // namespace eckart
