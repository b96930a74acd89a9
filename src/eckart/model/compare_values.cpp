#include "eckart/model/compare_values.h"

#include "eckart/io/widen.h"
#include "eckart/linalg/norms.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart::detail {
namespace {

// Rows that are subtracted at a time: some 4 MiB of floats.
constexpr Index block_elements = Index{1} << 20;

// A tensor's rows are its first axis; a scalar is one row.
Index rows_of(const Shape& shape) { return shape.rank() == 0 ? 1 : shape.size(0); }

template <class T>
Tensor<T> rows(const ComparedModel& model, const LogicalTensor& tensor, Index first, Index n) {
  if constexpr (std::is_same_v<T, float>) {
    return load_weight_rows(*model.checkpoint, tensor, first, n);
  } else {
    const Index columns = tensor.shape.count() / rows_of(tensor.shape);
    const StoredTensor& stored = *model.checkpoint->tensors()[tensor.values].stored;
    const auto element = static_cast<std::size_t>(bits(stored.dtype)) / 8;
    Tensor<T> values = Tensor<T>::uninitialized({n, columns});
    widen(stored.dtype,
          model.checkpoint->bytes(stored.name)
              .subspan(static_cast<std::size_t>(first * columns) * element,
                       static_cast<std::size_t>(n * columns) * element),
          std::span<T>(values.data(), static_cast<std::size_t>(values.count())));
    return values;
  }
}

// Sums over all blocks. Squares are added as norms, which do not overflow.
struct Sums {
  double norm_a = 0;
  double norm_difference = 0;
};

// b - a in place of b, and what is seen on the way; `at` is the number of elements before.
template <class T>
void subtract(const Tensor<T>& a, Tensor<T>& b, Index at, TensorDifference& result) {
  for (Index i = 0; i < b.count(); ++i) {
    const T before = a.data()[i];
    T& after = b.data()[i];
    if (!(after == before)) ++result.n_different;
    after -= before;
    const auto size = static_cast<double>(std::abs(after));
    if (!std::isfinite(size)) {
      if (result.n_not_finite++ == 0) result.first_not_finite = at + i;
    } else if (size > result.largest) {
      result.largest = size;
      result.largest_at = at + i;
    }
  }
}

// Of experts the axes before the last are rows; of convolutions, of one dimension too, all axes behind
// the first are columns, as extraction has them.
Shape matrix_shape(const LogicalTensor& tensor) {
  const Shape& shape = tensor.shape;
  const bool has_experts = shape.rank() == 3 && tensor.name.find("expert") != std::string::npos;
  const Index rows = has_experts ? shape.size(0) * shape.size(1) : shape.size(0);
  return {rows, shape.count() / rows};
}

bool is_matrix(const Shape& shape) { return shape.rank() >= 2 && shape.count() > 0; }

template <class T>
void compare(const ComparedTensors& tensors, const CheckpointDifferenceOptions& options,
             TensorDifference& result) {
  const Shape& shape = tensors.of_b->shape;
  const bool keeps = options.with_spectrum && is_matrix(shape);
  Tensor<T> whole = keeps ? Tensor<T>::uninitialized(shape) : Tensor<T>();
  const Index n_rows = rows_of(shape);
  const Index columns = n_rows == 0 ? 0 : shape.count() / n_rows;
  const Index block = std::max<Index>(1, block_elements / std::max<Index>(1, columns));
  Sums sums;
  for (Index first = 0; first < n_rows && columns > 0; first += block) {
    const Index n = std::min(block, n_rows - first);
    const Tensor<T> a = rows<T>(*tensors.a, *tensors.of_a, first, n);
    Tensor<T> b = rows<T>(*tensors.b, *tensors.of_b, first, n);
    subtract(a, b, first * columns, result);
    sums.norm_a = std::hypot(sums.norm_a, norm(a));
    sums.norm_difference = std::hypot(sums.norm_difference, norm(b));
    if (keeps) std::copy_n(b.data(), b.count(), whole.data() + first * columns);
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  result.has_values = true;
  result.norm_a = sums.norm_a;
  result.difference_norm = result.n_not_finite > 0 ? infinity : sums.norm_difference;
  const bool is_nothing = result.difference_norm == 0;
  result.relative = is_nothing         ? 0
                    : sums.norm_a == 0 ? infinity
                                       : result.difference_norm / sums.norm_a;
  if (!keeps || is_nothing || result.n_not_finite > 0) return;
  result.spectrum =
      spectrum(std::move(whole).reshaped(matrix_shape(*tensors.of_b)), options.spectrum);
}

std::vector<std::uint32_t> parts_of(const LogicalTensor& tensor) {
  std::vector<std::uint32_t> parts = {tensor.values};
  parts.insert(parts.end(), tensor.sides.begin(), tensor.sides.end());
  return parts;
}

bool is_plain_f64(const LogicalTensor& tensor) {
  return tensor.dtype == Dtype::f64 && !tensor.is_quantized;
}

}  // namespace

bool has_same_bytes(const ComparedModel& a, const LogicalTensor& of_a, const ComparedModel& b,
                    const LogicalTensor& of_b) {
  const std::vector<std::uint32_t> in_a = parts_of(of_a), in_b = parts_of(of_b);
  if (in_a.size() != in_b.size() || of_a.storage != of_b.storage) return false;
  for (std::size_t i = 0; i < in_a.size(); ++i) {
    const StoredTensor& x = *a.checkpoint->tensors()[in_a[i]].stored;
    const StoredTensor& y = *b.checkpoint->tensors()[in_b[i]].stored;
    if (x.dtype != y.dtype || !same_sizes(x.shape, y.shape)) return false;
    const auto of_x = a.checkpoint->bytes(x.name), of_y = b.checkpoint->bytes(y.name);
    if (!of_x.empty() && std::memcmp(of_x.data(), of_y.data(), of_x.size()) != 0) return false;
  }
  return true;
}

void compare_values(const ComparedTensors& tensors, const CheckpointDifferenceOptions& options,
                    TensorDifference& result) {
  const bool in_double = (is_plain_f64(*tensors.of_a) || is_plain_f64(*tensors.of_b)) &&
                         !tensors.of_a->is_quantized && !tensors.of_b->is_quantized;
  in_double ? compare<double>(tensors, options, result) : compare<float>(tensors, options, result);
}

}  // namespace eckart::detail
