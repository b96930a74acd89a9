// Subspace iteration on centred rows, which are never formed as a whole.
#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/random.h"
#include "eckart/linalg/pca_solvers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace eckart::detail {
namespace {

constexpr Index most_iterations = 60;
// Error of an eigenvalue, relative, at which the iteration ends.
constexpr double wanted_error = 1e-6;
// Elements of a block of centred rows.
constexpr Index block_elements = Index{1} << 22;

// The rows' covariance C, applied to the rows of a basis (l x d).
template <class T>
struct Applied {
  Tensor<T> image;      // l x d: basis C
  Tensor<double> gram;  // l x l: basis C basis^T
};

template <class T>
class CentredRows {
 public:
  CentredRows(TensorView<const T> x, const Tensor<double>& mean, const Tensor<double>& divisor)
      : x_(x), mean_(mean), divisor_(divisor) {
    const Index d = std::max<Index>(x.size(1), 1);
    rows_ = std::clamp<Index>(block_elements / d, 64, std::max<Index>(x.size(0), 64));
    block_ = Tensor<T>::uninitialized({std::min(rows_, x.size(0)), x.size(1)});
  }

  Applied<T> apply(const Tensor<T>& basis) {
    const Index n = x_.size(0);
    const Index d = x_.size(1);
    const Index l = basis.size(0);
    const T weight = static_cast<T>(1.0 / static_cast<double>(n - 1));
    Applied<T> applied{Tensor<T>({l, d}), Tensor<double>({l, l})};
    for (Index first = 0; first < n; first += rows_) {
      const Index count = std::min(rows_, n - first);
      centred_rows(x_.slice(0, {first, first + count, 1}), mean_, divisor_, block_.data());
      const TensorView<const T> block(block_.data(), {count, d});
      Tensor<T> scores = Tensor<T>::uninitialized({count, l});
      blas::gemm(T{1}, block, basis.view().transpose(), T{0}, scores.view());
      const TensorView<const T> given(scores.view());
      blas::gemm(weight, given.transpose(), block, T{1}, applied.image.view());
      const Tensor<double> gram = blas::gram(given);
      for (Index i = 0; i < gram.count(); ++i) {
        applied.gram.data()[i] += gram.data()[i] / static_cast<double>(n - 1);
      }
    }
    return applied;
  }

 private:
  TensorView<const T> x_;
  const Tensor<double>& mean_;
  const Tensor<double>& divisor_;
  Index rows_ = 0;
  Tensor<T> block_;
};

// Rows to orthonormal rows with the same span.
template <class T>
void orthonormalize(Tensor<T>& rows) {
  const Index l = rows.size(0);
  const Index d = rows.size(1);
  std::vector<T> tau(static_cast<std::size_t>(l));
  blas::geqrf(d, l, rows.data(), d, tau.data());
  blas::orgqr(d, l, l, rows.data(), d, tau.data());
}

template <class T>
Tensor<T> combined(const Tensor<double>& weights, const Tensor<T>& rows) {
  Tensor<T> rounded = Tensor<T>::uninitialized(weights.shape());
  for (Index i = 0; i < weights.count(); ++i) {
    rounded.data()[i] = static_cast<T>(weights.data()[i]);
  }
  Tensor<T> result = Tensor<T>::uninitialized({weights.size(0), rows.size(1)});
  blas::gemm(T{1}, TensorView<const T>(rounded.view()), TensorView<const T>(rows.view()), T{0},
             result.view());
  return result;
}

// Ritz values (descending) and vectors (rows of weights) of the symmetric gram.
struct Ritz {
  Tensor<double> values;
  Tensor<double> weights;
};

Ritz ritz_of(const Tensor<double>& gram) {
  const Index l = gram.size(0);
  Ritz ritz{Tensor<double>({l}), Tensor<double>({l, l})};
  Tensor<double> vectors(gram);
  std::vector<double> ascending(static_cast<std::size_t>(l));
  blas::syevd<double>(l, vectors.data(), l, ascending.data());
  for (Index i = 0; i < l; ++i) {
    ritz.values(i) = std::max(ascending[static_cast<std::size_t>(l - 1 - i)], 0.0);
    std::copy_n(vectors.data() + (l - 1 - i) * l, l, ritz.weights.data() + i * l);
  }
  return ritz;
}

// Whether the first k values are near enough. The error of a Ritz value is at most its residual r,
// and about r^2 over its distance to the values that are left out (Parlett, "The Symmetric
// Eigenvalue Problem", 11.7), of which the last Ritz value is an estimate.
template <class T>
bool judge(const Ritz& ritz, const Tensor<T>& image, const Tensor<T>& basis, PcaBasis& found) {
  const Index k = found.values.count();
  const Index d = basis.size(1);
  bool good = true;
  found.residual = 0;
  for (Index i = 0; i < k; ++i) {
    const double value = ritz.values(i);
    double squares = 0;
    for (Index j = 0; j < d; ++j) {
      const double difference = static_cast<double>(image.data()[i * d + j]) -
                                value * static_cast<double>(basis.data()[i * d + j]);
      squares += difference * difference;
    }
    const double residual = std::sqrt(squares);
    const double gap = value - ritz.values(ritz.values.count() - 1);
    const double error = gap > 0 ? std::min(residual, squares / gap) : residual;
    const double floor = std::numeric_limits<double>::epsilon() * ritz.values(0);
    good = good && error <= wanted_error * value + floor;
    if (ritz.values(0) > 0) found.residual = std::max(found.residual, residual / ritz.values(0));
  }
  return good;
}

}  // namespace

template <class T>
PcaBasis basis_of_subspace(TensorView<const T> x, const Tensor<double>& mean,
                           const Tensor<double>& divisor, const PcaOptions& options) {
  const Index d = x.size(1);
  const Index k = options.k;
  const Index l = std::min({2 * k + 16, x.size(0), d});
  Tensor<T> basis = Tensor<T>::uninitialized({l, d});
  RandomStream(options.seed)
      .fill_normal(std::span<T>(basis.data(), static_cast<std::size_t>(basis.count())));
  orthonormalize(basis);
  CentredRows<T> rows(x, mean, divisor);
  PcaBasis found;
  found.values = Tensor<double>({k});
  found.converged = false;
  while (!found.converged && found.iterations < most_iterations) {
    const Applied<T> applied = rows.apply(basis);
    ++found.iterations;
    const Ritz ritz = ritz_of(applied.gram);
    Tensor<T> image = combined(ritz.weights, applied.image);
    basis = combined(ritz.weights, basis);
    found.converged = judge(ritz, image, basis, found);
    for (Index i = 0; i < k; ++i) found.values(i) = ritz.values(i);
    if (found.converged || found.iterations == most_iterations) break;
    basis = std::move(image);
    orthonormalize(basis);
  }
  found.vectors = Tensor<double>::uninitialized({k, d});
  for (Index i = 0; i < k * d; ++i) {
    found.vectors.data()[i] = static_cast<double>(basis.data()[i]);
  }
  return found;
}

template PcaBasis basis_of_subspace(TensorView<const float>, const Tensor<double>&,
                                    const Tensor<double>&, const PcaOptions&);
template PcaBasis basis_of_subspace(TensorView<const double>, const Tensor<double>&,
                                    const Tensor<double>&, const PcaOptions&);

}  // namespace eckart::detail
