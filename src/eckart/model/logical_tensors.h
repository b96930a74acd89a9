// The parameters behind the storage: a quantized matrix lies in a file as packed integers with
// scales, zero points and order tables beside it, and is one matrix all the same.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/dtype.h"
#include "eckart/io/safetensors.h"
#include "eckart/model/quantization.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// The tensors of headers, wherever they are held; they must outlive the list.
using StoredList = std::vector<const StoredTensor*>;
StoredList stored_list(const Checkpoint& checkpoint);
StoredList stored_list(const std::vector<StoredTensor>& tensors);

enum class TensorKind {
  parameter,
  buffer,        // computed, not learned: masks, position numbers, rotary frequencies
  quantization,  // scales of the key-value cache, and scales whose matrix is not in the file
};

/// One tensor as the model sees it.
struct LogicalTensor {
  /// The name of the matrix before it was quantized: `…q_proj.weight` for `…q_proj.qweight`.
  std::string name;
  /// Unpacked, without axis names.
  Shape shape;
  /// False where the header holds the number of values but not their shape (bitsandbytes 4-bit
  /// flattens its matrices); `shape` is then one axis.
  bool has_shape = true;
  /// Values that are learned: the shape's count, or 0 for buffers and quantization tensors.
  Index parameters = 0;
  /// Of all its parts.
  std::uint64_t bytes = 0;
  /// `F32`, `NF4 in U8`, `GPTQ 4-bit in I32`, `MXFP4`, `F8_E4M3 with 128x128 scales`, …
  std::string storage;
  /// Of the part that holds the values.
  Dtype dtype = Dtype::f32;
  TensorKind kind = TensorKind::parameter;
  /// True where the values are packed or scaled: `storage` says how.
  bool is_quantized = false;
  /// Its parts as positions in the list of stored tensors: the one that holds the values, and the
  /// scales, zero points and tables beside it, which are no parameters.
  std::uint32_t values = 0;
  std::vector<std::uint32_t> sides;
  Index side_elements = 0;
  std::uint64_t side_bytes = 0;
};

/// The logical tensors of a file, in the order of their first parts. Storage is recognised by names
/// and dtypes: bitsandbytes 4-bit and 8-bit, GPTQ, AWQ, compressed-tensors, F8 with scales, MXFP4,
/// NVFP4, MLX. `quantization` settles what names and shapes leave open (bits of
/// compressed-tensors and MLX). What fits no scheme is taken as it is stored. Time linear in the
/// number of tensors.
std::vector<LogicalTensor> logical_tensors(const StoredList& stored,
                                           const std::optional<Quantization>& quantization = {});
std::vector<LogicalTensor> logical_tensors(const Checkpoint& checkpoint,
                                           const std::optional<Quantization>& quantization = {});

/// Whether a tensor is a buffer: `attn.bias` of shape 1x1xnxn is GPT-2's mask, while
/// `c_attn.bias` is learned.
bool is_buffer(const StoredTensor& tensor);

/// All tensors of one storage.
struct StorageTotal {
  std::string storage;
  TensorKind kind = TensorKind::parameter;
  Index n_tensors = 0;
  Index parameters = 0;
  std::uint64_t bytes = 0;
};
/// Totals by storage and kind, largest bytes first.
std::vector<StorageTotal> storage_totals(const std::vector<LogicalTensor>& tensors);

/// Sum of `parameters`.
Index total_parameters(const std::vector<LogicalTensor>& tensors);

std::string_view to_string(TensorKind kind);

}  // namespace eckart
