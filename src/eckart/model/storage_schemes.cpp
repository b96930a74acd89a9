#include "eckart/model/storage_schemes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>

namespace eckart::detail {
namespace {

using Sides = std::vector<const StoredTensor*>;

enum class Holds { i32, u32, u8, i8, narrow, anything };

struct SideRule {
  std::string_view suffix;  // of the side
  std::string_view owner;   // what stands in its place in the owner's name
  Holds holds;              // what the owner must be stored as
  bool is_side_alone;
};

// Of one side several owners may be thought of, as of `scales`: GPTQ's and MLX's.
constexpr std::array side_rules = {
    SideRule{".absmax", "", Holds::u8, true},
    SideRule{".quant_map", "", Holds::u8, true},
    SideRule{".nested_absmax", "", Holds::u8, true},
    SideRule{".nested_quant_map", "", Holds::u8, true},
    SideRule{".quant_state.bitsandbytes__nf4", "", Holds::u8, true},
    SideRule{".quant_state.bitsandbytes__fp4", "", Holds::u8, true},
    SideRule{".SCB", ".weight", Holds::i8, true},
    SideRule{".weight_format", ".weight", Holds::i8, true},
    SideRule{".qzeros", ".qweight", Holds::i32, true},
    SideRule{".g_idx", ".qweight", Holds::i32, true},
    SideRule{".scales", ".qweight", Holds::i32, false},
    SideRule{".scales", ".weight", Holds::u32, false},
    SideRule{".biases", ".weight", Holds::u32, false},
    SideRule{".weight_scale", ".weight_packed", Holds::anything, true},
    SideRule{".weight_scale", ".weight", Holds::narrow, true},
    SideRule{".weight_scale_inv", ".weight", Holds::narrow, true},
    SideRule{".weight_scale_2", ".weight", Holds::narrow, true},
    SideRule{".weight_zero_point", ".weight_packed", Holds::anything, true},
    SideRule{".weight_zero_point", ".weight", Holds::narrow, true},
    SideRule{".weight_shape", ".weight_packed", Holds::anything, true},
    SideRule{".weight_g_idx", ".weight_packed", Holds::anything, true},
    SideRule{".weight_g_idx", ".weight", Holds::narrow, true},
    SideRule{".weight_global_scale", ".weight_packed", Holds::anything, true},
    SideRule{".weight_global_scale", ".weight", Holds::narrow, true},
    SideRule{".input_global_scale", ".weight_packed", Holds::anything, true},
    SideRule{".input_global_scale", ".weight", Holds::narrow, true},
    SideRule{".input_scale", ".weight_packed", Holds::anything, true},
    SideRule{".input_scale", ".weight", Holds::narrow, true},
    SideRule{".input_zero_point", ".weight_packed", Holds::anything, true},
    SideRule{".input_zero_point", ".weight", Holds::narrow, true},
    SideRule{".activation_scale", ".weight", Holds::narrow, true},
    SideRule{"_scales", "_blocks", Holds::u8, false},
    SideRule{"_scale_inv", "", Holds::narrow, true},
    SideRule{"_scale", "", Holds::narrow, false},
};

// Scales of the key-value cache and of activations belong to no matrix.
constexpr std::array<std::string_view, 8> lone_sides = {
    ".k_scale",    ".v_scale",      ".q_scale",      ".kv_scale",
    ".prob_scale", ".k_zero_point", ".v_zero_point", ".output_scale",
};

bool holds(const StoredTensor& tensor, Holds wanted) {
  switch (wanted) {
    case Holds::i32:
      return tensor.dtype == Dtype::i32;
    case Holds::u32:
      return tensor.dtype == Dtype::u32;
    case Holds::u8:
      return tensor.dtype == Dtype::u8;
    case Holds::i8:
      return tensor.dtype == Dtype::i8;
    case Holds::narrow:
      return bits(tensor.dtype) <= 8 && tensor.dtype != Dtype::boolean;
    case Holds::anything:
      return true;
  }
  return false;
}

std::string replaced_suffix(std::string_view name, std::string_view suffix,
                            std::string_view replacement) {
  return std::string(name.substr(0, name.size() - suffix.size())) + std::string(replacement);
}

// The first suffix that a side has wins.
const StoredTensor* find_side(const Sides& sides,
                              std::initializer_list<std::string_view> suffixes) {
  for (const std::string_view suffix : suffixes) {
    for (const StoredTensor* side : sides) {
      if (side->name.ends_with(suffix)) return side;
    }
  }
  return nullptr;
}

// The longest axis that is looked at: far beyond any matrix, and its products with the few values
// of a word stay whole numbers of 63 bits. A tensor without elements may have longer ones.
constexpr Index longest_axis = Index{1} << 40;

bool has_plain_axes(const Shape& shape) {
  return std::all_of(shape.sizes().begin(), shape.sizes().end(),
                     [](Index size) { return size <= longest_axis; });
}

// A shape of these sizes; nothing when it would hold more than a file can.
std::optional<Shape> shape_of(std::vector<Index> sizes) {
  constexpr double largest = 1e18;
  double count = 1;
  for (const Index size : sizes) count *= static_cast<double>(size);
  if (count > largest) return std::nullopt;
  return Shape(std::move(sizes));
}

// The shape with one axis replaced.
std::optional<Shape> with_size(const Shape& shape, Index axis, Index size) {
  std::vector<Index> sizes = shape.sizes();
  sizes[static_cast<std::size_t>(shape.normalized_axis(axis))] = size;
  return shape_of(std::move(sizes));
}

bool is_packable(Index n_bits) { return n_bits >= 1 && n_bits <= 8; }

std::string packed_text(std::string_view scheme, Index n_bits, Dtype dtype) {
  return std::string(scheme) + ' ' + std::to_string(n_bits) + "-bit in " +
         std::string(to_string(dtype));
}

// bitsandbytes 4-bit: two values a byte, flattened.
std::optional<Unpacked> unpack_bnb4(const StoredTensor& values, const Sides& sides,
                                    const std::optional<Quantization>& quantization) {
  const bool has_fp4 = find_side(sides, {"bitsandbytes__fp4"}) != nullptr ||
                       (quantization && quantization->type == "fp4");
  Index count = 0;
  if (__builtin_mul_overflow(values.shape.count(), 2, &count)) return std::nullopt;
  const std::optional<Shape> flat = shape_of({count});
  if (!flat) return std::nullopt;
  return Unpacked{values.name, *flat, false, has_fp4 ? "FP4 in U8" : "NF4 in U8"};
}

// GPTQ packs along the input: qweight is in*bits/32 x out, qzeros groups x out*bits/32.
// AWQ packs along the output: qweight is in x out*bits/32, scales groups x out.
std::optional<Unpacked> unpack_gptq_or_awq(const StoredTensor& values, const Sides& sides) {
  const StoredTensor* const scales = find_side(sides, {".scales"});
  if (values.shape.rank() != 2 || scales == nullptr || scales->shape.rank() != 2) {
    return std::nullopt;
  }
  const Index rows = values.shape.size(0);
  const Index columns = values.shape.size(1);
  const Index d_out = scales->shape.size(1);
  if (d_out < 1 || columns < 1) return std::nullopt;
  const std::string name = replaced_suffix(values.name, ".qweight", ".weight");
  if (columns == d_out) {
    const StoredTensor* const zeros = find_side(sides, {".qzeros"});
    const Index n_bits =
        zeros != nullptr && zeros->shape.rank() == 2 && zeros->shape.size(1) < d_out
            ? zeros->shape.size(1) * 32 / d_out
            : 4;
    if (!is_packable(n_bits)) return std::nullopt;
    const std::optional<Shape> shape = shape_of({d_out, rows * 32 / n_bits});
    if (!shape) return std::nullopt;
    return Unpacked{name, *shape, true, packed_text("GPTQ", n_bits, values.dtype)};
  }
  const Index n_bits = columns * 32 / d_out;
  const std::optional<Shape> shape = shape_of({d_out, rows});
  if (!shape || columns > d_out || !is_packable(n_bits)) return std::nullopt;
  return Unpacked{name, *shape, true, packed_text("AWQ", n_bits, values.dtype)};
}

std::optional<Unpacked> unpack_compressed(const StoredTensor& values, const Sides& sides,
                                          const std::optional<Quantization>& quantization) {
  if (values.shape.rank() < 1) return std::nullopt;
  const std::string name = replaced_suffix(values.name, ".weight_packed", ".weight");
  const Index columns = values.shape.size(-1);
  if (values.dtype == Dtype::u8) {
    const std::optional<Shape> shape = with_size(values.shape, -1, columns * 2);
    const StoredTensor* const scale = find_side(sides, {".weight_scale"});
    if (!shape) return std::nullopt;
    const bool has_f8_scale = scale != nullptr && scale->dtype == Dtype::f8_e4m3;
    return Unpacked{name, *shape, true, has_f8_scale ? "NVFP4" : "MXFP4"};
  }
  if (values.dtype != Dtype::i32) return std::nullopt;
  const Index n_bits = quantization && is_packable(quantization->bits) ? quantization->bits : 4;
  // A row that is no whole number of words is padded; the order table says its true length.
  const StoredTensor* const order = find_side(sides, {".weight_g_idx"});
  const Index d_in =
      order != nullptr && order->shape.rank() == 1 ? order->shape.size(0) : columns * (32 / n_bits);
  const std::optional<Shape> shape = with_size(values.shape, -1, d_in);
  if (!shape) return std::nullopt;
  return Unpacked{name, *shape, true, packed_text("compressed-tensors", n_bits, values.dtype)};
}

// gpt-oss: experts x out x groups x 16 bytes of two values, one shared exponent a group.
std::optional<Unpacked> unpack_mxfp4(const StoredTensor& values) {
  const Shape& packed = values.shape;
  if (packed.rank() < 2) return std::nullopt;
  std::vector<Index> sizes(packed.sizes().begin(), packed.sizes().end() - 1);
  if (__builtin_mul_overflow(packed.size(-2), packed.size(-1) * 2, &sizes.back())) {
    return std::nullopt;
  }
  const std::optional<Shape> shape = shape_of(std::move(sizes));
  if (!shape) return std::nullopt;
  return Unpacked{replaced_suffix(values.name, "_blocks", ""), *shape, true, "MXFP4"};
}

// MLX: out x in*bits/32 words, scales out x in/group_size. The shapes give the bits once the group
// size is known, so that a file with matrices of different bits is read right.
std::optional<Unpacked> unpack_mlx(const StoredTensor& values, const StoredTensor& scales,
                                   const std::optional<Quantization>& quantization) {
  if (values.shape.rank() < 1 || scales.shape.rank() != values.shape.rank()) return std::nullopt;
  const Index words = values.shape.size(-1);
  const Index n_groups = scales.shape.size(-1);
  std::vector<Index> group_sizes = {64, 32, 128, 16};
  if (quantization && quantization->group_size > 0) group_sizes = {quantization->group_size};
  for (const Index group_size : group_sizes) {
    const Index d_in = n_groups * group_size;
    if (d_in < 1 || words * 32 % d_in != 0 || !is_packable(words * 32 / d_in)) continue;
    const std::optional<Shape> shape = with_size(values.shape, -1, d_in);
    if (!shape) return std::nullopt;
    return Unpacked{values.name, *shape, true, packed_text("MLX", words * 32 / d_in, values.dtype)};
  }
  return std::nullopt;
}

std::string scale_text(const Shape& values, const StoredTensor* scale) {
  if (scale == nullptr || scale->shape.count() <= 1 || values.rank() < 2) return "one scale";
  const Shape& scales = scale->shape;
  const bool has_columns = scales.rank() == values.rank();
  const Index row_block = block_size(values.size(-2), scales.size(has_columns ? -2 : -1));
  const Index column_block =
      has_columns ? block_size(values.size(-1), scales.size(-1)) : values.size(-1);
  if (row_block == 1 && column_block == values.size(-1)) return "a scale a row";
  if (row_block == 0 || column_block == 0) return sizes_to_string(scales) + " scales";
  return std::to_string(row_block) + 'x' + std::to_string(column_block) + " scales";
}

// One value an element, or two in a U8 where scales stand a sixteenth as wide: NVFP4.
std::optional<Unpacked> unpack_scaled(const StoredTensor& values, const Sides& sides) {
  const StoredTensor* const scale =
      find_side(sides, {".weight_scale", ".weight_scale_inv", "_scale_inv", "_scale", ".SCB"});
  if (values.dtype == Dtype::u8 && scale != nullptr && bits(scale->dtype) == 8 &&
      values.shape.rank() >= 1) {
    const std::optional<Shape> shape = with_size(values.shape, -1, values.shape.size(-1) * 2);
    if (!shape) return std::nullopt;
    return Unpacked{values.name, *shape, true, scale->dtype == Dtype::f8_e4m3 ? "NVFP4" : "MXFP4"};
  }
  const std::string dtype(to_string(values.dtype));
  if (find_side(sides, {".SCB"}) != nullptr) {
    return Unpacked{values.name, values.shape, true, "bitsandbytes 8-bit in " + dtype};
  }
  return Unpacked{values.name, values.shape, true,
                  dtype + " with " + scale_text(values.shape, scale)};
}

}  // namespace

Index block_size(Index size, Index n_blocks) {
  if (n_blocks <= 1) return size;
  for (Index block = 1; block <= size; block *= 2) {
    if ((size - 1) / block + 1 == n_blocks) return block;
  }
  return 0;
}

std::optional<SideName> side_name(std::string_view name) {
  // Nearly all names, told apart at once.
  if (name.ends_with(".weight") || name.ends_with(".bias")) return std::nullopt;
  SideName result;
  bool is_found = false;
  for (const SideRule& rule : side_rules) {
    if (!name.ends_with(rule.suffix) || name.size() == rule.suffix.size()) continue;
    is_found = true;
    result.owners.push_back(replaced_suffix(name, rule.suffix, rule.owner));
    result.is_side_alone = result.is_side_alone || rule.is_side_alone;
  }
  for (const std::string_view suffix : lone_sides) {
    if (!name.ends_with(suffix)) continue;
    is_found = true;
    result.is_side_alone = true;
  }
  if (!is_found) return std::nullopt;
  return result;
}

bool takes_side(const StoredTensor& owner, std::string_view side) {
  return std::any_of(side_rules.begin(), side_rules.end(), [&](const SideRule& rule) {
    return side.ends_with(rule.suffix) && holds(owner, rule.holds) &&
           replaced_suffix(side, rule.suffix, rule.owner) == owner.name;
  });
}

std::optional<Unpacked> unpack(const StoredTensor& values, const Sides& sides,
                               const std::optional<Quantization>& quantization) {
  if (!has_plain_axes(values.shape)) return std::nullopt;
  for (const StoredTensor* side : sides) {
    if (!has_plain_axes(side->shape)) return std::nullopt;
  }
  if (values.name.ends_with(".qweight")) return unpack_gptq_or_awq(values, sides);
  if (values.name.ends_with(".weight_packed")) {
    return unpack_compressed(values, sides, quantization);
  }
  if (sides.empty()) return std::nullopt;
  if (values.name.ends_with("_blocks")) return unpack_mxfp4(values);
  if (find_side(sides, {".absmax"}) != nullptr) return unpack_bnb4(values, sides, quantization);
  const StoredTensor* const scales = find_side(sides, {".scales"});
  if (values.dtype == Dtype::u32) {
    return scales == nullptr ? std::nullopt : unpack_mlx(values, *scales, quantization);
  }
  return unpack_scaled(values, sides);
}

}  // namespace eckart::detail
