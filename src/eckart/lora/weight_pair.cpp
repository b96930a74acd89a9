#include "eckart/lora/weight_pair.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/io/narrow.h"
#include "eckart/linalg/norms.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace eckart {
namespace {

// Elements that are read together: 16 MiB of floats of each side.
constexpr Index block_elements_read = Index{1} << 22;

// Calls `body(first, n)` for blocks of rows.
template <class Body>
void for_each_block(const WeightPair& pair, const Body& body) {
  const Index rows = pair.rows();
  const Index step = std::max<Index>(1, block_elements_read / std::max<Index>(pair.columns(), 1));
  for (Index first = 0; first < rows; first += step) body(first, std::min(step, rows - first));
}

Index rows_of(const LogicalTensor& tensor) {
  return tensor.shape.rank() == 0 ? 1 : tensor.shape.size(0);
}

Tensor<float> load_tuned(const WeightPair& pair, Index first, Index n) {
  Tensor<float> values = load_weight_rows(*pair.tuned_file, *pair.tuned, first, n);
  release_weight_rows(*pair.tuned_file, *pair.tuned, first, n);
  return values;
}

// Rows of the base, as many as it has of them.
Tensor<float> load_base(const WeightPair& pair, Index first, Index n) {
  const Index rows = pair.base == nullptr ? 0 : rows_of(*pair.base);
  const Index last = std::min(first + n, rows);
  if (last <= first) return Tensor<float>({0, pair.columns()});
  Tensor<float> values = load_weight_rows(*pair.base_file, *pair.base, first, last - first);
  release_weight_rows(*pair.base_file, *pair.base, first, last - first);
  return values;
}

// values -= base, where there are rows of the base.
void subtract(const Tensor<float>& base, Tensor<float>& values) {
  constexpr Index grain = 1 << 16;
  parallel_for(base.count(), grain, [&](Index begin, Index end) {
    float* const to = values.data();
    const float* const from = base.data();
    for (Index i = begin; i < end; ++i) to[i] -= from[i];
  });
}

std::string place_of(const Shape& shape, Index element) {
  std::string text;
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(element % shape.size(axis)) + (text.empty() ? "" : ", ") + text;
    element /= shape.size(axis);
  }
  return "(" + text + ")";
}

void check_finite(const Tensor<float>& values, const LogicalTensor& tensor, const Checkpoint& file,
                  Index first) {
  if (std::isfinite(norm(values.view(), Norm::frobenius))) return;
  const float* const found = std::find_if(values.data(), values.data() + values.count(),
                                          [](float value) { return !std::isfinite(value); });
  const Index at = found - values.data();
  if (at == values.count()) return;
  throw_argument_error("extract: " + printable(tensor.name) + " of " + printable_path(file.path()) +
                           " has " + (std::isnan(*found) ? "a NaN" : "an infinity") + " at " +
                           place_of(tensor.shape, first * values.size(1) + at) +
                           ", but every number must be finite",
                       "`eckart check` lists all such tensors");
}

// Whether rounding the base's values to the tuned tensor's dtype gives the tuned ones.
bool rounds_to(const Tensor<float>& base, const Tensor<float>& tuned, Dtype dtype) {
  if (base.count() != tuned.count()) return false;
  const auto n = static_cast<std::size_t>(base.count());
  std::vector<std::byte> rounded(n * static_cast<std::size_t>(bits(dtype)) / 8);
  std::vector<std::byte> stored(rounded.size());
  narrow(dtype, {base.data(), n}, rounded);
  narrow(dtype, {tuned.data(), n}, stored);
  return rounded == stored;
}

bool is_equal(const Tensor<float>& a, const Tensor<float>& b) {
  return a.count() == b.count() && std::equal(a.data(), a.data() + a.count(), b.data());
}

}  // namespace

Index WeightPair::rows() const { return rows_of(*tuned); }

Index WeightPair::columns() const {
  Index count = 1;
  for (Index axis = 1; axis < tuned->shape.rank(); ++axis) count *= tuned->shape.size(axis);
  return count;
}

PairNorms compare(const WeightPair& pair) {
  const bool has_base = pair.base != nullptr;
  PairNorms result;
  result.is_same = has_base && same_sizes(pair.base->shape, pair.tuned->shape);
  const Dtype dtype = pair.tuned->dtype;
  result.is_rounded = result.is_same && !pair.tuned->is_quantized && is_narrowable(dtype) &&
                      bits(dtype) < bits(pair.base->dtype);
  for_each_block(pair, [&](Index first, Index n) {
    Tensor<float> tuned = load_tuned(pair, first, n);
    const Tensor<float> base = load_base(pair, first, n);
    check_finite(tuned, *pair.tuned, *pair.tuned_file, first);
    if (has_base) check_finite(base, *pair.base, *pair.base_file, first);
    result.is_same = result.is_same && is_equal(base, tuned);
    result.is_rounded = result.is_rounded && rounds_to(base, tuned, dtype);
    result.base = std::hypot(result.base, norm(base.view(), Norm::frobenius));
    subtract(base, tuned);
    const double all = norm(tuned.view(), Norm::frobenius);
    const Index n_shared = base.size(0);
    const double shared =
        n_shared == n ? all : norm(tuned.view().slice(0, {0, n_shared}), Norm::frobenius);
    result.difference = std::hypot(result.difference, all);
    result.shared_difference = std::hypot(result.shared_difference, shared);
  });
  // Rows that only the base has: the tuned model has dropped them.
  if (has_base && pair.base->shape.rank() > 0) {
    const Index first = pair.rows(), n = pair.base->shape.size(0) - first;
    if (n > 0) {
      const Tensor<float> rest = load_weight_rows(*pair.base_file, *pair.base, first, n);
      check_finite(rest, *pair.base, *pair.base_file, first);
    }
  }
  result.is_rounded = result.is_rounded && !result.is_same;
  return result;
}

Tensor<float> load_difference(const WeightPair& pair, Index first, Index n) {
  const Index columns = pair.columns();
  Tensor<float> result = Tensor<float>::uninitialized({n, columns});
  const Index step = std::max<Index>(1, block_elements_read / std::max<Index>(columns, 1));
  for (Index begin = 0; begin < n; begin += step) {
    const Index count = std::min(step, n - begin);
    Tensor<float> block = load_tuned(pair, first + begin, count);
    subtract(load_base(pair, first + begin, count), block);
    std::copy_n(block.data(), block.count(), result.data() + begin * columns);
  }
  return result;
}

void DifferenceReader::apply(TensorView<const float> x, TensorView<float> y) const {
  for_each_block(pair_, [&](Index first, Index n) {
    const Tensor<float> block = load_difference(pair_, first, n);
    blas::gemm<float>(1.0F, block.view(), x, 0.0F, y.slice(0, {first, first + n}));
  });
}

void DifferenceReader::apply_adjoint(TensorView<const float> x, TensorView<float> y) const {
  for_each_element([](float& to) { to = 0; }, y);
  for_each_block(pair_, [&](Index first, Index n) {
    const Tensor<float> block = load_difference(pair_, first, n);
    blas::gemm<float>(1.0F, block.view().transpose(), x.slice(0, {first, first + n}), 1.0F, y);
  });
}

double DifferenceReader::frobenius_norm() const {
  double result = 0;
  for_each_block(pair_, [&](Index first, Index n) {
    const Tensor<float> block = load_difference(pair_, first, n);
    result = std::hypot(result, norm(block.view(), Norm::frobenius));
  });
  return result;
}

double DifferenceReader::distance(TensorView<const float> u, TensorView<const float> vt) const {
  double result = 0;
  for_each_block(pair_, [&](Index first, Index n) {
    Tensor<float> block = load_difference(pair_, first, n);
    blas::gemm<float>(-1.0F, u.slice(0, {first, first + n}), vt, 1.0F, block.view());
    result = std::hypot(result, norm(block.view(), Norm::frobenius));
  });
  return result;
}

}  // namespace eckart
