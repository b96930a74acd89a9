// How quantized matrices are stored: which tensors belong together and what they unpack to.
// Included by the library alone.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/safetensors.h"
#include "eckart/model/quantization.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A scale, zero point or table: whose it may be by its name.
struct SideName {
  std::vector<std::string> owners;  // names of the tensor that would hold the values, likely first
  bool is_side_alone = false;       // its name means quantization even without an owner
};
/// Nothing for a name that means no quantization.
std::optional<SideName> side_name(std::string_view name);
/// Whether `owner` is stored as values that a side of this name goes with.
bool takes_side(const StoredTensor& owner, std::string_view side);

/// What a stored tensor and its sides are.
struct Unpacked {
  std::string name;
  Shape shape;
  bool has_shape = true;
  std::string storage;
};
/// Nothing when no scheme fits, then the tensor is what it is stored as.
std::optional<Unpacked> unpack(const StoredTensor& values,
                               const std::vector<const StoredTensor*>& sides,
                               const std::optional<Quantization>& quantization);

/// Values that share a scale along an axis of `size` values and `n_blocks` scales: a power of two, so
/// that a last block cut short (576 rows in 5 blocks of 128) does not blur it. 0 where none fits.
Index block_size(Index size, Index n_blocks);

}  // namespace eckart::detail
