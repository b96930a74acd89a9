#include "eckart/model/weights.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/io/widen.h"
#include "eckart/model/storage_schemes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {
namespace {

[[noreturn]] void fail(const LogicalTensor& tensor, const std::string& why) {
  throw_argument_error("load_weight: " + printable(tensor.name) + " " + why);
}

bool is_f8(Dtype dtype) { return is_floating(dtype) && bits(dtype) == 8; }

// Scales of activations say nothing of the weight.
bool is_of_activations(std::string_view side) {
  return side.ends_with(".input_scale") || side.ends_with(".activation_scale") ||
         side.ends_with(".input_zero_point") || side.ends_with(".input_global_scale");
}

// The tensor that the values are multiplied by; nothing when they stand for themselves.
const StoredTensor* find_scale(const Checkpoint& checkpoint, const LogicalTensor& tensor) {
  const StoredTensor* scale = nullptr;
  for (const std::uint32_t position : tensor.sides) {
    const StoredTensor& side = *checkpoint.tensors()[position].stored;
    if (is_of_activations(side.name)) continue;
    const bool is_scale =
        side.name == tensor.name + "_scale" || side.name == tensor.name + "_scale_inv";
    if (!is_scale || scale != nullptr || !is_floating(side.dtype) || !is_widenable(side.dtype)) {
      fail(tensor, "is " + tensor.storage + ", but what " + printable(side.name) +
                       " means for its values is not known");
    }
    scale = &side;
  }
  return scale;
}

// Which scale a value is multiplied by. The tensor is taken as slabs x rows x columns.
struct Scales {
  std::vector<float> values;
  Index slab_stride = 0;  // in scales
  Index row_block = 1;
  Index row_stride = 0;
  Index column_block = 1;
  Index column_stride = 0;
};

// One scale for all, one a slab or a row, or one a block whose sides are powers of two.
std::optional<Scales> scales_for(const Shape& shape, const Shape& scale) {
  Scales found;
  if (scale.count() == 1 || shape.count() == 0) return found;
  const Index rank = shape.rank();
  if (rank < 2 || rank > 3) return std::nullopt;
  const Index slabs = rank == 3 ? shape.size(0) : 1;
  const Index rows = shape.size(-2), columns = shape.size(-1);
  if (scale.rank() == 1) {
    if (scale.size(0) != shape.size(0)) return std::nullopt;
    (rank == 3 ? found.slab_stride : found.row_stride) = 1;
    return found;
  }
  if (scale.rank() != rank) return std::nullopt;
  const Index scale_rows = scale.size(-2), scale_columns = scale.size(-1);
  if (rank == 3 && scale.size(0) != slabs) return std::nullopt;
  found.row_block = detail::block_size(rows, scale_rows);
  found.column_block = detail::block_size(columns, scale_columns);
  if (found.row_block == 0 || found.column_block == 0) return std::nullopt;
  found.slab_stride = scale_rows * scale_columns;
  found.row_stride = scale_columns;
  found.column_stride = 1;
  return found;
}

std::optional<Scales> load_scales(const Checkpoint& checkpoint, const LogicalTensor& tensor) {
  const StoredTensor* const stored = find_scale(checkpoint, tensor);
  if (stored == nullptr) return std::nullopt;
  std::optional<Scales> scales = scales_for(tensor.shape, stored->shape);
  if (!scales) {
    fail(tensor, "is " + sizes_to_string(tensor.shape) + " and its scales " +
                     printable(stored->name) + " are " + sizes_to_string(stored->shape) +
                     ", but they must be one for all, one a row or one a block");
  }
  scales->values.resize(static_cast<std::size_t>(stored->shape.count()));
  widen<float>(stored->dtype, checkpoint.bytes(stored->name), scales->values);
  return scales;
}

// Multiplies rows of the tensor as slabs x rows x columns, the first of them number `first`.
void multiply(const Scales& scales, Index first, Index slab_rows, Tensor<float>& values) {
  const Index columns = values.size(1);
  constexpr Index grain_elements = 1 << 16;
  parallel_for(values.size(0), std::max<Index>(1, grain_elements / columns),
               [&](Index begin, Index end) {
                 for (Index i = begin; i < end; ++i) {
                   const Index slab = (first + i) / slab_rows, row = (first + i) % slab_rows;
                   const float* const scale = scales.values.data() + slab * scales.slab_stride +
                                              row / scales.row_block * scales.row_stride;
                   float* const at = values.data() + i * columns;
                   for (Index j = 0; j < columns; ++j) {
                     at[j] *= scale[j / scales.column_block * scales.column_stride];
                   }
                 }
               });
}

Index elements_of_a_row(const Shape& shape) {
  Index count = 1;
  for (Index axis = 1; axis < shape.rank(); ++axis) count *= shape.size(axis);
  return count;
}

}  // namespace

std::string why_unreadable(const LogicalTensor& tensor) {
  if (tensor.kind == TensorKind::quantization) return "scales of a quantization";
  const bool has_scales = tensor.is_quantized && is_f8(tensor.dtype) && tensor.has_shape;
  if (tensor.is_quantized && !has_scales) return "quantized: " + tensor.storage;
  if (!is_floating(tensor.dtype) || !is_widenable(tensor.dtype)) {
    return "stored as " + tensor.storage + ", which is not read as numbers";
  }
  return {};
}

void check_scales(const Checkpoint& checkpoint, const std::vector<LogicalTensor>& tensors) {
  const auto is_f8_matrix = [](const LogicalTensor& tensor) {
    return tensor.kind == TensorKind::parameter && is_f8(tensor.dtype) && tensor.shape.rank() >= 2;
  };
  const auto scaled = std::find_if(
      tensors.begin(), tensors.end(),
      [&](const LogicalTensor& tensor) { return is_f8_matrix(tensor) && tensor.is_quantized; });
  if (scaled == tensors.end()) return;
  for (const LogicalTensor& tensor : tensors) {
    if (!is_f8_matrix(tensor) || tensor.is_quantized) continue;
    const CheckpointTensor& stored = checkpoint.tensors()[tensor.values];
    throw_format_error(checkpoint.shards()[stored.shard].path(), std::nullopt,
                       "tensor \"" + printable(tensor.name) + "\": it is " + tensor.storage +
                           " without a scale, but " + printable(scaled->name) +
                           " and others have one beside them",
                       "its scale may stand in a shard that is missing");
  }
}

Tensor<float> load_weight_rows(const Checkpoint& checkpoint, const LogicalTensor& tensor,
                               Index first, Index n) {
  if (const std::string why = why_unreadable(tensor); !why.empty()) {
    fail(tensor, "can't be read: " + why);
  }
  const Shape& shape = tensor.shape;
  const Index rows = shape.rank() == 0 ? 1 : shape.size(0);
  if (first < 0 || n < 0 || first > rows || n > rows - first) {
    fail(tensor, "has " + std::to_string(rows) + " rows, but " + std::to_string(n) + " from row " +
                     std::to_string(first) + " on are asked for");
  }
  const StoredTensor& stored = *checkpoint.tensors()[tensor.values].stored;
  const std::optional<Scales> scales = load_scales(checkpoint, tensor);
  const Index row = elements_of_a_row(shape);
  Tensor<float> result = Tensor<float>::uninitialized({n, row});
  const auto element = static_cast<std::size_t>(bits(stored.dtype) / 8);
  const std::span<float> values(result.data(), static_cast<std::size_t>(n * row));
  widen<float>(stored.dtype,
               checkpoint.bytes(stored.name)
                   .subspan(static_cast<std::size_t>(first * row) * element,
                            static_cast<std::size_t>(n * row) * element),
               values);
  if (!scales || result.count() == 0) return result;
  if (shape.rank() < 3) {
    multiply(*scales, first, rows, result);
    return result;
  }
  const Index columns = shape.size(-1);
  Tensor<float> flat = std::move(result).reshaped({n * row / columns, columns});
  multiply(*scales, first * row / columns, shape.size(-2), flat);
  return std::move(flat).reshaped({n, row});
}

void release_weight_rows(const Checkpoint& checkpoint, const LogicalTensor& tensor, Index first,
                         Index n) {
  const CheckpointTensor& place = checkpoint.tensors()[tensor.values];
  const SafetensorsFile& file = checkpoint.shards()[place.shard];
  const std::uint64_t row =
      place.stored->bytes() / static_cast<std::uint64_t>(std::max<Index>(
                                  1, tensor.shape.rank() == 0 ? 1 : tensor.shape.size(0)));
  const std::uint64_t begin = place.stored->begin + static_cast<std::uint64_t>(first) * row;
  file.file().release(begin, begin + static_cast<std::uint64_t>(n) * row);
}

Tensor<float> load_weight(const Checkpoint& checkpoint, const LogicalTensor& tensor) {
  const Index rows = tensor.shape.rank() == 0 ? 1 : tensor.shape.size(0);
  return load_weight_rows(checkpoint, tensor, 0, rows).reshaped(tensor.shape);
}

}  // namespace eckart
