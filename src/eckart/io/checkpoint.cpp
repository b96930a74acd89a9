#include "eckart/io/checkpoint.h"

#include "eckart/core/edit_distance.h"
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/open_shards.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::size_t max_suggestions = 3;
constexpr std::size_t max_compared = 64;  // bytes in which two names may differ and still be close

bool is_ending(std::string_view whole, std::string_view ending) {
  return whole.size() > ending.size() && whole.ends_with(ending) &&
         whole[whole.size() - ending.size() - 1] == '.';
}

// How far a name is from the wanted one, or nothing when they have little in common. The same name
// with modules before it (`model.` missing, say) is closest.
std::optional<std::size_t> distance(std::string_view name, std::string_view wanted) {
  if (is_ending(name, wanted) || is_ending(wanted, name)) return 0;
  const std::size_t longest = std::max(name.size(), wanted.size());
  const auto prefix = std::mismatch(name.begin(), name.end(), wanted.begin(), wanted.end());
  const auto n_prefix = static_cast<std::size_t>(prefix.first - name.begin());
  name.remove_prefix(n_prefix);
  wanted.remove_prefix(n_prefix);
  const auto suffix = std::mismatch(name.rbegin(), name.rend(), wanted.rbegin(), wanted.rend());
  const auto n_suffix = static_cast<std::size_t>(suffix.first - name.rbegin());
  name.remove_suffix(n_suffix);
  wanted.remove_suffix(n_suffix);
  if (std::max(name.size(), wanted.size()) > std::min(max_compared, longest / 2 + 1)) {
    return std::nullopt;
  }
  const std::size_t edits = edit_distance(name, wanted);
  if (edits > longest / 3 + 1) return std::nullopt;
  return edits;
}

std::string closest_names(const std::vector<CheckpointTensor>& tensors, std::string_view wanted) {
  std::vector<std::pair<std::size_t, std::size_t>> close;  // distance, position
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (const auto far = distance(tensors[i].stored->name, wanted)) close.emplace_back(*far, i);
  }
  const std::size_t n_named = std::min(max_suggestions, close.size());
  std::partial_sort(close.begin(), close.begin() + static_cast<std::ptrdiff_t>(n_named),
                    close.end());
  std::string text;
  for (std::size_t i = 0; i < n_named; ++i) {
    if (i > 0) text += i + 1 == n_named ? " or " : ", ";
    text += printable(tensors[close[i].second].stored->name);
  }
  return text.empty() ? text : "did you mean " + text + "?";
}

}  // namespace

std::pair<std::vector<CheckpointTensor>::const_iterator,
          std::vector<CheckpointTensor>::const_iterator>
tensors_named(const std::vector<CheckpointTensor>& tensors, std::string_view name) {
  const auto begin = std::lower_bound(tensors.begin(), tensors.end(), name,
                                      [](const CheckpointTensor& tensor, std::string_view b) {
                                        return natural_less(tensor.stored->name, b);
                                      });
  const auto end = std::find_if(begin, tensors.end(), [&](const CheckpointTensor& tensor) {
    return tensor.stored->name != name;
  });
  return {begin, end};
}

std::uint64_t Checkpoint::tensor_bytes() const {
  std::uint64_t bytes = 0;
  for (const CheckpointTensor& tensor : tensors_) bytes += tensor.stored->bytes();
  return bytes;
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto [found, end] = tensors_named(tensors_, name);
  return found == end ? nullptr : found->stored;
}

const CheckpointTensor& Checkpoint::require(std::string_view name) const {
  const auto [found, end] = tensors_named(tensors_, name);
  if (found != end) return *found;
  throw_argument_error(fmt::format("checkpoint: {} is no tensor of {}, which holds {}",
                                   printable(name), printable_path(path_), tensors_.size()),
                       closest_names(tensors_, name));
}

std::span<const std::byte> Checkpoint::bytes(std::string_view name) const {
  const CheckpointTensor& tensor = require(name);
  return shards_[tensor.shard].bytes(*tensor.stored);
}

template <class T>
Tensor<T> Checkpoint::tensor(std::string_view name) const {
  const CheckpointTensor& found = require(name);
  const StoredTensor& stored = *found.stored;
  if (!is_widenable(stored.dtype)) {
    throw_argument_error(
        fmt::format("checkpoint: {} is {}, but only numbers of whole bytes that are "
                    "not complex can be read as floats",
                    printable(name), to_string(stored.dtype)),
        "its bytes can be read as they are: bytes(name)");
  }
  Tensor<T> tensor = Tensor<T>::uninitialized(stored.shape);
  widen<T>(stored.dtype, shards_[found.shard].bytes(stored),
           std::span<T>(tensor.data(), static_cast<std::size_t>(tensor.count())));
  return tensor;
}

template Tensor<float> Checkpoint::tensor<float>(std::string_view name) const;
template Tensor<double> Checkpoint::tensor<double>(std::string_view name) const;

Checkpoint open_checkpoint(const std::filesystem::path& path) {
  const CheckpointFiles files = find_checkpoint(path);
  Checkpoint checkpoint;
  checkpoint.path_ = path.string();
  checkpoint.folder_ = files.folder;
  OpenShards open = open_shards(files, Strictness::read, checkpoint.warnings_);
  throw_first_error(checkpoint.warnings_);
  checkpoint.shards_ = std::move(open.shards);
  checkpoint.index_ = std::move(open.index);
  checkpoint.tensors_ = std::move(open.tensors);
  return checkpoint;
}

}  // namespace eckart
