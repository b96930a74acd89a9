#include "eckart/io/findings.h"
#include "eckart/model/difference_list.h"
#include "eckart/model/name_positions.h"
#include "eckart/model/prose.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eckart::detail {
namespace {

struct ByteSums {
  std::uint64_t all = 0;
  std::uint64_t buffers = 0;
  std::uint64_t sides = 0;     // scales and the like
  std::uint64_t tied = 0;      // stored though another tensor has the same values
  std::uint64_t elements = 0;  // as stored
};

std::uint64_t tied_bytes(const CrossCheckInput& input) {
  if (input.architecture == nullptr) return 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < input.matches->of.size(); ++i) {
    const std::int32_t spec = input.matches->of[i].spec;
    if (spec < 0) continue;
    const TensorSpec& line = input.architecture->tensors[static_cast<std::size_t>(spec)];
    if (!line.tied_to.empty()) bytes += (*input.tensors)[i].bytes;
  }
  return bytes;
}

ByteSums sum_bytes(const CrossCheckInput& input) {
  ByteSums sums;
  for (const StoredTensor* stored : *input.stored) {
    sums.all += stored->bytes();
    sums.elements += static_cast<std::uint64_t>(stored->shape.count());
  }
  if (input.tensors == nullptr) return sums;
  for (const LogicalTensor& tensor : *input.tensors) {
    if (tensor.kind == TensorKind::buffer) sums.buffers += tensor.bytes;
    if (tensor.kind == TensorKind::quantization) sums.sides += tensor.bytes;
    sums.sides += tensor.side_bytes;
  }
  sums.tied = tied_bytes(input);
  return sums;
}

// What the difference between total_size and the sum of bytes is, where it is something known.
std::string explain(std::uint64_t said, const ByteSums& sums) {
  const auto is_gap = [&](std::uint64_t bytes) {
    return bytes > 0 && (said + bytes == sums.all || said == sums.all + bytes);
  };
  if (is_gap(sums.buffers)) return "the difference is exactly the buffers";
  if (is_gap(sums.tied)) return "the difference is exactly the tied matrix that is stored too";
  if (is_gap(sums.sides)) return "the difference is exactly the scales of quantized matrices";
  if (said == sums.elements) return "total_size counts elements, not bytes";
  if (said == 2 * sums.all) return "total_size counts twice the bytes, as before a conversion";
  if (2 * said == sums.all) return "total_size counts half the bytes, as before a conversion";
  return {};
}

void compare_total(const CrossCheckInput& input, DifferenceList& list) {
  if (!input.index->total_size) return;
  const ByteSums sums = sum_bytes(input);
  const std::uint64_t said = *input.index->total_size;
  if (said == sums.all) return;
  const std::string reason = explain(said, sums);
  const bool is_explained = !reason.empty();
  const auto bytes_text = [](std::uint64_t bytes) {
    return grouped_digits(static_cast<Index>(bytes)) + " bytes";
  };
  Difference difference;
  difference.level = is_explained ? DifferenceLevel::note : DifferenceLevel::warning;
  difference.kind = is_explained ? "total_size_explained" : "total_size_differs";
  difference.expected = std::to_string(said);
  difference.found = std::to_string(sums.all);
  difference.message = "the index says total_size " + bytes_text(said) +
                       ", but the tensors of the headers take " + bytes_text(sums.all);
  if (is_explained) difference.message += ": " + reason;
  list.add(std::move(difference));
}

// Elements as they are stored, or the parameters that they stand for: writers count either.
void compare_parameters(const CrossCheckInput& input, DifferenceList& list) {
  if (!input.index->total_parameters) return;
  const std::uint64_t said = *input.index->total_parameters;
  std::uint64_t elements = 0;
  for (const StoredTensor* stored : *input.stored) {
    elements += static_cast<std::uint64_t>(stored->shape.count());
  }
  if (said == elements) return;
  if (input.tensors != nullptr &&
      said == static_cast<std::uint64_t>(total_parameters(*input.tensors))) {
    return;
  }
  Difference difference;
  difference.level = DifferenceLevel::warning;
  difference.kind = "total_parameters_differs";
  difference.expected = std::to_string(said);
  difference.found = std::to_string(elements);
  difference.message = "the index says total_parameters " + std::to_string(said) +
                       ", but the tensors of the headers have " + std::to_string(elements) +
                       " elements";
  list.add(std::move(difference));
}

// A tensor in another shard than the index says: whoever opens that shard for it finds nothing.
void compare_shard(const CrossCheckInput& input, const ShardIndex::Entry& entry,
                   std::uint32_t position, DifferenceList& list) {
  if (input.shards == nullptr) return;
  const std::uint32_t stands_in = (*input.shards)[position];
  if (stands_in == entry.shard) return;
  const std::string& said = input.index->shards[entry.shard];
  const std::string& found = input.index->shards[stands_in];
  list.add({.level = DifferenceLevel::error,
            .kind = "index_wrong_shard",
            .name = entry.tensor,
            .expected = said,
            .found = found,
            .sentence = "{name} is in " + printable(found) + "{where}, but the index names " +
                        printable(said),
            .hint = "a loader that opens the shard of the index does not find it: fetch or write "
                    "the index again"});
}

}  // namespace

void compare_index(const CrossCheckInput& input, DifferenceList& list) {
  if (input.index == nullptr || input.stored == nullptr) return;
  const StoredList& stored = *input.stored;
  NamePositions positions(stored);
  std::vector<bool> is_in_index(stored.size(), false);
  for (const ShardIndex::Entry& entry : input.index->entries) {
    if (const std::optional<std::uint32_t> position = positions.find(entry.tensor)) {
      is_in_index[*position] = true;
      compare_shard(input, entry, *position, list);
      continue;
    }
    list.add({.level = DifferenceLevel::error,
              .kind = "index_tensor_missing",
              .name = entry.tensor,
              .expected = input.index->shards[entry.shard],
              .sentence = "{name} is in the index{where}, but no shard's header has it"});
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (is_in_index[i]) continue;
    list.add({.level = DifferenceLevel::warning,
              .kind = "not_in_index",
              .name = stored[i]->name,
              .found = to_string(stored[i]->shape),
              .sentence = "{name} is in the headers{where}, but the index does not name it: "
                          "loaders that follow the index leave it out"});
  }
  compare_total(input, list);
  compare_parameters(input, list);
}

}  // namespace eckart::detail
