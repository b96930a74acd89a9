#include "eckart/model/logical_matrices.h"

#include "eckart/io/widen.h"
#include "eckart/model/match_specs.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

// A part of the output axis.
struct Part {
  std::string name;
  Index first = 0;
  Index run = 0;
  Index stride = 0;
  Index repeats = 1;
};

// Queries, keys and values of a fused matrix. GPT-NeoX and BLOOM keep each head's three together.
std::vector<Part> qkv_parts(const Architecture& a, Index out) {
  if (a.family == "gpt_neox" || a.family == "bloom") {
    const Index d = a.d_head;
    if (3 * a.n_heads * d != out) return {};
    return {{"q", 0, d, 3 * d, a.n_heads},
            {"k", d, d, 3 * d, a.n_heads},
            {"v", 2 * d, d, 3 * d, a.n_heads}};
  }
  const Index heads = a.n_heads * a.d_head, kv_heads = a.n_kv_heads * a.d_head;
  if (heads + 2 * kv_heads != out) return {};
  return {
      {"q", 0, heads, 0, 1}, {"k", heads, kv_heads, 0, 1}, {"v", heads + kv_heads, kv_heads, 0, 1}};
}

// gpt-oss takes gate and up in turn, column by column; others have one behind the other.
std::vector<Part> gate_up_parts(const Architecture& a, Index out) {
  const Index half = out / 2;
  if (out % 2 != 0) return {};
  if (a.family == "gpt_oss") return {{"gate", 0, 1, 2, half}, {"up", 1, 1, 2, half}};
  return {{"gate", 0, half, 0, 1}, {"up", half, half, 0, 1}};
}

std::vector<Part> parts_of(const Architecture* architecture, const TensorSpec* spec, Index out) {
  if (spec != nullptr && spec->role == Role::w_qkv) return qkv_parts(*architecture, out);
  if (spec != nullptr && spec->role == Role::w_gate_up) return gate_up_parts(*architecture, out);
  return {};
}

bool names_experts(std::string_view name) { return name.find("expert") != std::string_view::npos; }

class Finder {
 public:
  Finder(const Architecture* architecture, LogicalMatrices& found)
      : architecture_(architecture), found_(found) {}

  void add(const LogicalTensor& tensor, const TensorSpec* spec) {
    // A shape that contradicts the table says nothing about parts; `inspect` tells of it.
    if (spec != nullptr && !same_sizes(spec->shape, tensor.shape)) spec = nullptr;
    const LeftOut out = reason_for(tensor, spec);
    if (!out.reason.empty()) {
      found_.left_out.push_back(out);
      return;
    }
    const bool has_experts =
        tensor.shape.rank() == 3 && (spec != nullptr ? spec->shape.find_axis("expert") == Index{0}
                                                     : names_experts(tensor.name));
    if (has_experts) {
      for (Index expert = 0; expert < tensor.shape.size(0); ++expert) {
        add_slab(tensor, spec, expert);
      }
    } else {
      add_slab(tensor, spec, -1);
    }
  }

 private:
  static LeftOut reason_for(const LogicalTensor& tensor, const TensorSpec* spec) {
    LeftOut out{.name = tensor.name, .reason = {}};
    if (tensor.kind != TensorKind::parameter) {
      out.reason = tensor.kind == TensorKind::buffer ? "a buffer" : "scales of a quantization";
    } else if (spec != nullptr && !spec->tied_to.empty()) {
      out.reason = "tied to " + spec->tied_to;
    } else if ((spec != nullptr && spec->is_bias) ||
               std::string_view(tensor.name).ends_with("bias")) {
      out.reason = "a bias";
    } else if (tensor.shape.rank() < 2 && tensor.has_shape) {
      out.reason = tensor.shape.rank() == 1 ? "a vector" : "a single number";
    } else if (tensor.is_quantized) {
      out = {tensor.name, "quantized: " + tensor.storage, true};
    } else if (!is_widenable(tensor.dtype) || !is_floating(tensor.dtype)) {
      out = {tensor.name, "stored as " + tensor.storage + ", which is not read as numbers", true};
    } else if (tensor.shape.count() == 0) {
      out.reason = "without elements";
    }
    return out;
  }

  // The matrix of one expert, or of the whole tensor (expert -1), and of its parts.
  void add_slab(const LogicalTensor& tensor, const TensorSpec* spec, Index expert) {
    const Shape& shape = tensor.shape;
    const Index rows = shape.size(expert < 0 ? 0 : 1);
    const Index columns = shape.count() / ((expert < 0 ? 1 : shape.size(0)) * rows);
    LogicalMatrix matrix{.name = tensor.name,
                         .tensor = tensor.name,
                         .shape = {},
                         .dtype = tensor.dtype,
                         .is_input_first = spec != nullptr && spec->input_first,
                         .begin = expert < 0 ? 0 : expert * rows * columns,
                         .stored_rows = rows,
                         .stored_columns = columns};
    std::vector<std::string> axes(2);
    if (spec != nullptr && (shape.rank() == 2 || expert >= 0) && spec->shape.has_names()) {
      axes = {spec->shape.name(-2), spec->shape.name(-1)};
    }
    if (matrix.is_input_first) std::swap(axes[0], axes[1]);
    const Index out = matrix.is_input_first ? columns : rows;
    std::vector<Part> parts = parts_of(architecture_, spec, out);
    const bool is_whole = parts.empty();
    if (is_whole) parts.push_back({"", 0, out, 0, 1});
    for (const Part& part : parts) {
      LogicalMatrix one = matrix;
      one.first = part.first;
      one.run = part.run;
      one.stride = part.stride;
      one.repeats = part.repeats;
      const std::vector<Index> sizes = {part.run * part.repeats,
                                        matrix.is_input_first ? rows : columns};
      const std::string& axis = is_whole ? axes[0] : part.name;
      one.shape = axis.empty() || axis == axes[1] ? Shape(sizes) : Shape(sizes, {axis, axes[1]});
      one.name += suffix(expert, part.name);
      found_.matrices.push_back(std::move(one));
    }
  }

  static std::string suffix(Index expert, const std::string& part) {
    if (expert < 0) return part.empty() ? "" : "[" + part + "]";
    return "[expert " + std::to_string(expert) + (part.empty() ? "]" : ", " + part + "]");
  }

  const Architecture* architecture_;
  LogicalMatrices& found_;
};

}  // namespace

LogicalMatrices logical_matrices(const Checkpoint& checkpoint,
                                 const std::vector<LogicalTensor>& tensors,
                                 const Architecture* architecture) {
  LogicalMatrices found;
  SpecMatches matches;
  if (architecture != nullptr) matches = match_specs(*architecture, tensors);
  Finder finder(architecture, found);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    LogicalTensor tensor = tensors[i];
    const bool is_known = architecture != nullptr && matches.of[i].spec >= 0;
    const TensorSpec* const spec =
        is_known ? &architecture->tensors[static_cast<std::size_t>(matches.of[i].spec)] : nullptr;
    // The name in the file is what its bytes are asked for.
    if (!tensor.is_quantized) tensor.name = checkpoint.tensors()[tensor.values].stored->name;
    finder.add(tensor, spec);
  }
  return found;
}

template <class T>
Tensor<T> load_matrix(const Checkpoint& checkpoint, const LogicalMatrix& matrix) {
  const auto element = static_cast<std::size_t>(bits(matrix.dtype) / 8);
  const std::span<const std::byte> bytes = checkpoint.bytes(matrix.tensor);
  const auto read = [&](Index from, Index count, T* to) {
    widen(matrix.dtype,
          bytes.subspan(static_cast<std::size_t>(from) * element,
                        static_cast<std::size_t>(count) * element),
          std::span<T>(to, static_cast<std::size_t>(count)));
  };
  const Index rows = matrix.stored_rows, columns = matrix.stored_columns;
  const Index out = matrix.run * matrix.repeats;
  if (!matrix.is_input_first) {
    Tensor<T> result = Tensor<T>::uninitialized({out, columns});
    for (Index i = 0; i < matrix.repeats; ++i) {
      const Index row = matrix.first + i * matrix.stride;
      read(matrix.begin + row * columns, matrix.run * columns,
           result.data() + i * matrix.run * columns);
    }
    return result;
  }
  Tensor<T> result = Tensor<T>::uninitialized({rows, out});
  if (out == columns) {
    read(matrix.begin, rows * columns, result.data());
    return result;
  }
  constexpr Index block_elements = Index{1} << 20;
  const Index block = std::max<Index>(1, block_elements / columns);
  std::vector<T> buffer(static_cast<std::size_t>(std::min(block, rows) * columns));
  for (Index begin = 0; begin < rows; begin += block) {
    const Index count = std::min(block, rows - begin);
    read(matrix.begin + begin * columns, count * columns, buffer.data());
    for (Index row = 0; row < count; ++row) {
      const T* const from = buffer.data() + row * columns + matrix.first;
      T* to = result.data() + (begin + row) * out;
      for (Index i = 0; i < matrix.repeats; ++i) {
        to = std::copy_n(from + i * matrix.stride, matrix.run, to);
      }
    }
  }
  return result;
}

template Tensor<float> load_matrix(const Checkpoint&, const LogicalMatrix&);
template Tensor<double> load_matrix(const Checkpoint&, const LogicalMatrix&);

}  // namespace eckart
