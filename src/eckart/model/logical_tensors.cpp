#include "eckart/model/logical_tensors.h"

#include "eckart/core/parallel.h"
#include "eckart/model/name_positions.h"
#include "eckart/model/storage_schemes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

namespace eckart {
namespace {

// A side and the tensor that holds the values, both as positions in the stored list.
struct Ownership {
  std::uint32_t owner = 0;
  std::uint32_t side = 0;
};

struct Belonging {
  std::vector<Ownership> owned;  // by owner, then side
  std::vector<bool> is_owned;
  std::vector<bool> is_side_alone;
};

// The tensors that are scales, zero points or tables by their names; most files have none.
struct NamedSide {
  std::uint32_t position = 0;
  detail::SideName name;
};

std::vector<NamedSide> named_sides(const StoredList& stored) {
  std::vector<NamedSide> sides;
  for (std::uint32_t i = 0; i < stored.size(); ++i) {
    std::optional<detail::SideName> name = detail::side_name(stored[i]->name);
    if (name) sides.push_back({i, std::move(*name)});
  }
  return sides;
}

Belonging find_belonging(const StoredList& stored) {
  Belonging belonging;
  belonging.is_owned.assign(stored.size(), false);
  belonging.is_side_alone.assign(stored.size(), false);
  const std::vector<NamedSide> sides = named_sides(stored);
  if (sides.empty()) return belonging;
  detail::NamePositions positions(stored);
  for (const NamedSide& side : sides) {
    const std::uint32_t i = side.position;
    for (const std::string& owner_name : side.name.owners) {
      const std::optional<std::uint32_t> owner = positions.find(owner_name);
      if (!owner || *owner == i) continue;
      if (!detail::takes_side(*stored[*owner], stored[i]->name)) continue;
      belonging.owned.push_back({*owner, i});
      belonging.is_owned[i] = true;
      break;
    }
    belonging.is_side_alone[i] = !belonging.is_owned[i] && side.name.is_side_alone;
  }
  std::sort(belonging.owned.begin(), belonging.owned.end(),
            [](const Ownership& a, const Ownership& b) {
              return a.owner != b.owner ? a.owner < b.owner : a.side < b.side;
            });
  return belonging;
}

LogicalTensor as_stored(const StoredTensor& stored, std::uint32_t position) {
  LogicalTensor tensor;
  tensor.name = stored.name;
  tensor.shape = stored.shape;
  tensor.parameters = stored.shape.count();
  tensor.bytes = stored.bytes();
  tensor.storage = std::string(to_string(stored.dtype));
  tensor.dtype = stored.dtype;
  tensor.values = position;
  return tensor;
}

// The tensor whose values stand at `position`.
LogicalTensor logical_tensor(const StoredList& stored, std::uint32_t position,
                             const Belonging& belonging,
                             const std::optional<Quantization>& quantization) {
  LogicalTensor tensor = as_stored(*stored[position], position);
  const auto [first, last] =
      std::equal_range(belonging.owned.begin(), belonging.owned.end(), Ownership{position, 0},
                       [](const Ownership& a, const Ownership& b) { return a.owner < b.owner; });
  StoredList sides;
  for (auto owned = first; owned != last; ++owned) {
    const StoredTensor& side = *stored[owned->side];
    sides.push_back(&side);
    tensor.sides.push_back(owned->side);
    tensor.bytes += side.bytes();
    tensor.side_bytes += side.bytes();
    tensor.side_elements += side.shape.count();
  }
  if (std::optional<detail::Unpacked> unpacked =
          detail::unpack(*stored[position], sides, quantization)) {
    tensor.name = std::move(unpacked->name);
    tensor.shape = std::move(unpacked->shape);
    tensor.has_shape = unpacked->has_shape;
    tensor.storage = std::move(unpacked->storage);
    tensor.parameters = tensor.shape.count();
    tensor.is_quantized = true;
  } else if (belonging.is_side_alone[position]) {
    tensor.kind = TensorKind::quantization;
    tensor.parameters = 0;
  } else if (is_buffer(*stored[position])) {
    tensor.kind = TensorKind::buffer;
    tensor.parameters = 0;
  }
  return tensor;
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace

StoredList stored_list(const Checkpoint& checkpoint) {
  StoredList list;
  list.reserve(checkpoint.tensors().size());
  for (const CheckpointTensor& tensor : checkpoint.tensors()) list.push_back(tensor.stored);
  return list;
}

StoredList stored_list(const std::vector<StoredTensor>& tensors) {
  StoredList list;
  list.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) list.push_back(&tensor);
  return list;
}

bool is_buffer(const StoredTensor& tensor) {
  const std::string_view name = tensor.name;
  const bool is_whole = !is_floating(tensor.dtype);
  if (tensor.dtype == Dtype::boolean || tensor.dtype == Dtype::i64) return true;
  if (ends_with_any(name, {"inv_freq", ".cos_cached", ".sin_cached", ".num_batches_tracked",
                           ".running_mean", ".running_var"})) {
    return true;
  }
  if (name.ends_with("masked_bias")) return tensor.shape.count() == 1;
  if (ends_with_any(name, {"attn.bias", "attention.bias"})) return tensor.shape.rank() >= 3;
  return is_whole && ends_with_any(name, {"position_ids", "token_type_ids", "mask"});
}

std::vector<LogicalTensor> logical_tensors(const StoredList& stored,
                                           const std::optional<Quantization>& quantization) {
  const Belonging belonging = find_belonging(stored);
  std::vector<std::uint32_t> values;  // positions of the parts that hold values
  values.reserve(stored.size() - belonging.owned.size());
  for (std::uint32_t i = 0; i < stored.size(); ++i) {
    if (!belonging.is_owned[i]) values.push_back(i);
  }
  std::vector<LogicalTensor> tensors(values.size());
  constexpr Index grain = 8192;  // of half a million tensors
  parallel_for(static_cast<Index>(values.size()), grain, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      tensors[i] = logical_tensor(stored, values[i], belonging, quantization);
    }
  });
  return tensors;
}

std::vector<LogicalTensor> logical_tensors(const Checkpoint& checkpoint,
                                           const std::optional<Quantization>& quantization) {
  return logical_tensors(stored_list(checkpoint), quantization);
}

std::vector<StorageTotal> storage_totals(const std::vector<LogicalTensor>& tensors) {
  std::map<std::pair<TensorKind, std::string_view>, StorageTotal> totals;
  for (const LogicalTensor& tensor : tensors) {
    StorageTotal& total = totals[{tensor.kind, tensor.storage}];
    total.storage = tensor.storage;
    total.kind = tensor.kind;
    ++total.n_tensors;
    total.parameters += tensor.parameters;
    total.bytes += tensor.bytes;
  }
  std::vector<StorageTotal> sorted;
  for (auto& [key, total] : totals) sorted.push_back(std::move(total));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const StorageTotal& a, const StorageTotal& b) { return a.bytes > b.bytes; });
  return sorted;
}

Index total_parameters(const std::vector<LogicalTensor>& tensors) {
  Index total = 0;
  for (const LogicalTensor& tensor : tensors) total += tensor.parameters;
  return total;
}

std::string_view to_string(TensorKind kind) {
  switch (kind) {
    case TensorKind::parameter:
      return "parameter";
    case TensorKind::buffer:
      return "buffer";
    case TensorKind::quantization:
      return "quantization";
  }
  return "";
}

}  // namespace eckart
