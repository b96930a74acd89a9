#include "eckart/linalg/lanczos_space.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/blas/threads.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace eckart::detail {
namespace {

using View = TensorView<double>;
using ConstView = TensorView<const double>;

Tensor<double> product(ConstView a, ConstView b) {
  Tensor<double> result = Tensor<double>::uninitialized({a.size(0), b.size(1)});
  blas::gemm(1.0, a, b, 0.0, result.view());
  return result;
}

double largest_column_norm(ConstView a) {
  double largest = 0;
  std::vector<double> sums(static_cast<std::size_t>(a.size(1)), 0.0);
  for (Index row = 0; row < a.size(0); ++row) {
    for (Index column = 0; column < a.size(1); ++column) {
      sums[static_cast<std::size_t>(column)] += a(row, column) * a(row, column);
    }
  }
  for (const double sum : sums) largest = std::max(largest, std::sqrt(sum));
  return largest;
}

// Orthonormal columns of the span of w without the directions shorter than `floor`, by the
// eigenvectors of w^T w: unlike its Cholesky factor, they take a w of any rank.
Tensor<double> orthonormal_columns(ConstView w, double floor) {
  Tensor<double> gram = product(w.transpose(), w);
  const Index b = gram.size(0);
  std::vector<double> values(static_cast<std::size_t>(b));
  detail::eigenvectors_of(gram, values.data());
  // Half the digits are lost in the squares: what is 1e-7 of the largest is not seen.
  const double least = std::max(floor * floor, 1e-14 * std::max(values.back(), 0.0));
  Index first = 0;
  while (first < b && !(values[static_cast<std::size_t>(first)] > least)) ++first;
  Tensor<double> kept(Shape{b - first, b});
  for (Index i = first; i < b; ++i) {
    const double scale = 1 / std::sqrt(values[static_cast<std::size_t>(i)]);
    for (Index j = 0; j < b; ++j) kept(i - first, j) = gram(i, j) * scale;
  }
  return product(w, kept.view().transpose());
}

template <class T>
class Lanczos {
 public:
  Lanczos(const LinearOperator<T>& a, const QuadratureOptions& options)
      : a_(a), shape_(a.shape()), is_tall_(shape_.size(0) >= shape_.size(1)) {
    result_.size = std::min(shape_.size(0), shape_.size(1));
    const Index probes = options.probes;
    capacity_ = std::min(result_.size, probes * options.steps);
    basis_ = Tensor<double>::uninitialized({result_.size, capacity_});
    result_.projected = Tensor<double>(Shape{capacity_, capacity_});
    result_.scale = std::ldexp(1.0, std::ilogb(options.frobenius_norm));
    begin(options);
  }

  LanczosSpace run(Index steps) {
    for (Index step = 0; step < steps; ++step) {
      result_.before_last = block_begin_;
      Tensor<double> w = multiplied();
      remove_basis(w, true);
      result_.residual = product(w.view().transpose(), w);
      if (result_.dimension == result_.size) {
        result_.is_exhausted = true;
        break;
      }
      if (step + 1 == steps) break;
      if (!append(std::move(w))) {
        result_.is_exhausted = true;
        break;
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  ConstView basis() const { return basis_.view().slice(1, {.begin = 0, .end = result_.dimension}); }

  // Normal vectors of length sqrt(size): their squared components then sum to the size exactly.
  void begin(const QuadratureOptions& options) {
    const Index n = result_.size;
    Tensor<double> omega = Tensor<double>::uninitialized({n, options.probes});
    RandomStream(options.seed)
        .fill_normal(std::span<double>(omega.data(), static_cast<std::size_t>(omega.count())));
    for (Index probe = 0; probe < options.probes; ++probe) {
      double sum = 0;
      for (Index i = 0; i < n; ++i) sum += omega(i, probe) * omega(i, probe);
      const double scale = sum > 0 ? std::sqrt(static_cast<double>(n) / sum) : 0;
      for (Index i = 0; i < n; ++i) omega(i, probe) *= scale;
    }
    append(Tensor<double>(omega));
    result_.start = product(basis().transpose(), omega);
  }

  void apply(bool plainly, const Tensor<T>& x, Tensor<T>& y) const {
    if (plainly) {
      a_.apply(x, y);
    } else {
      a_.apply_adjoint(x, y);
    }
  }

  // B times the last block, in T, as doubles.
  Tensor<double> multiplied() {
    const Index n = result_.size, k = result_.dimension - block_begin_;
    Tensor<T> x = Tensor<T>::uninitialized({n, k});
    for_each_element([](T& to, const double& from) { to = static_cast<T>(from); }, x.view(),
                     basis().slice(1, {.begin = block_begin_}));
    Tensor<T> y = Tensor<T>::uninitialized({shape_.size(is_tall_ ? 0 : 1), k});
    Tensor<T> z = Tensor<T>::uninitialized({n, k});
    apply(is_tall_, x, y);
    // Scaled in between: A^T A of a float matrix need not have a float's range.
    // Divided: of a matrix of subnormal numbers, T has no inverse of the scale.
    parallel_for(y.count(), Index{1} << 16, [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        y.data()[i] = static_cast<T>(static_cast<double>(y.data()[i]) / result_.scale);
      }
    });
    apply(!is_tall_, y, z);
    result_.passes += 2;
    Tensor<double> w = Tensor<double>::uninitialized({n, k});
    for (Index i = 0; i < w.count(); ++i) {
      w.data()[i] = static_cast<double>(z.data()[i]) / result_.scale;
    }
    longest_ = std::max(longest_, largest_column_norm(w));
    return w;
  }

  // w := (I - V V^T) w, twice: once alone leaves rounding errors as large as what is removed.
  void remove_basis(Tensor<double>& w, bool into_projected) {
    for (int round = 0; round < 2; ++round) {
      const Tensor<double> h = product(basis().transpose(), w);
      blas::gemm(-1.0, basis(), ConstView(h.view()), 1.0, w.view());
      if (!into_projected) continue;
      for (Index i = 0; i < h.size(0); ++i) {
        for (Index j = 0; j < h.size(1); ++j) result_.projected(i, block_begin_ + j) += h(i, j);
      }
    }
  }

  // The directions of w as a further block; false when it has none.
  bool append(Tensor<double> w) {
    // Rounding errors of the products are about eps ||A||_2 ||A v||; what is shorter is nothing else.
    const double eps = std::max(static_cast<double>(std::numeric_limits<T>::epsilon()), 1e-15);
    const double floor = 32 * eps * longest_;
    Tensor<double> block = orthonormal_columns(w, floor);
    // Once more: short directions, made long, bring what was left of the basis in them with them.
    if (result_.dimension > 0 && block.size(1) > 0) remove_basis(block, false);
    if (block.size(1) > 0) block = orthonormal_columns(block, 0.5);  // new ones are nearly 1 long
    const Index k = std::min(block.size(1), capacity_ - result_.dimension);
    block_begin_ = result_.dimension;
    if (k == 0) return false;
    const View to = basis_.view().slice(1, {.begin = block_begin_, .end = block_begin_ + k});
    for_each_element([](double& out, const double& in) { out = in; }, to,
                     ConstView(block.view()).slice(1, {.begin = block.size(1) - k}));
    result_.dimension += k;
    return true;
  }

  // Above the diagonal T was computed; below it stands the same.
  void finish() {
    const Index d = result_.dimension;
    Tensor<double> projected = Tensor<double>::uninitialized({d, d});
    for (Index i = 0; i < d; ++i) {
      for (Index j = 0; j < d; ++j) {
        projected(i, j) = result_.projected(std::min(i, j), std::max(i, j));
      }
    }
    result_.projected = std::move(projected);
  }

  const LinearOperator<T>& a_;
  Shape shape_;
  bool is_tall_;
  Index capacity_ = 0;
  Index block_begin_ = 0;  // of the last block
  double longest_ = 0;     // of all B v
  Tensor<double> basis_;
  LanczosSpace result_;
};

}  // namespace

void eigenvectors_of(Tensor<double>& matrix, double* values) {
  const Index n = matrix.size(0);
  // Column-major: vector i is row i of memory.
  blas::with_own_threads([&] { blas::syevd(n, matrix.data(), n, values); });
}

template <class T>
LanczosSpace lanczos_space(const LinearOperator<T>& a, const QuadratureOptions& options) {
  return Lanczos<T>(a, options).run(options.steps);
}

template LanczosSpace lanczos_space(const LinearOperator<float>&, const QuadratureOptions&);
template LanczosSpace lanczos_space(const LinearOperator<double>&, const QuadratureOptions&);

}  // namespace eckart::detail
