#include "eckart/linalg/exact_low_rank.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/linalg/orthonormalize.h"
#include "eckart/linalg/svd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

// Up to this size the SVD in double costs no more than what comes around the Gram matrix.
constexpr Index largest_svd = 256;

void check_converged(blas::LapackInt info) {
  if (info != 0) throw_argument_error("low_rank: LAPACK's iteration did not converge");
}

// Squares of descending values as shares of the largest one, so that none leaves double's range.
std::vector<double> squares_of(const Tensor<double>& values) {
  const double largest = values.count() > 0 && values(0) > 0 ? values(0) : 1;
  std::vector<double> squares;
  for (Index i = 0; i < values.count(); ++i) {
    squares.push_back(values(i) / largest * (values(i) / largest));
  }
  return squares;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (auto value = values.rbegin(); value != values.rend(); ++value) sum += *value;
  return sum;
}

// Values that are rounding are left out: the matrix has no more rank.
Index resolved_rank(const Tensor<double>& values, Index rank, double unit) {
  const double least = values.count() > 0 ? values(0) * unit : 0;
  while (rank > 0 && values(rank - 1) <= least) --rank;
  return rank;
}

template <class T>
Tensor<T> rounded(TensorView<const double> from) {
  Tensor<T> to = Tensor<T>::uninitialized(from.shape());
  for_each_element([](T& x, const double& y) { x = static_cast<T>(y); }, to.view(), from);
  return to;
}

template <class T>
LowRank<T> by_svd(const Tensor<T>& a, const RankChoice& choice) {
  Tensor<double> copy = Tensor<double>::uninitialized({a.size(0), a.size(1)});
  for_each_element([](double& x, const T& y) { x = static_cast<double>(y); }, copy.view(),
                   a.view());
  const Svd<double> whole = svd(copy);
  const std::vector<double> squares = squares_of(whole.s);
  LowRank<T> result;
  result.method = "svd";
  const double unit =
      static_cast<double>(std::max(a.size(0), a.size(1))) * std::numeric_limits<double>::epsilon();
  const Index most = std::min(choice.of(squares, sum_of(squares)), whole.s.count());
  result.rank = resolved_rank(whole.s, most, unit);
  const Slice kept{0, result.rank};
  result.u = rounded<T>(whole.u.view().slice(1, kept));
  result.vt = rounded<T>(whole.vt.view().slice(0, kept));
  result.s = Tensor<T>({result.rank});
  for (Index i = 0; i < result.rank; ++i) {
    result.s(i) = static_cast<T>(whole.s(i));
  }
  return result;
}

// All eigenvalues of a symmetric matrix, ascending, and the eigenvectors of as many of the largest
// as `rank_of` says, largest first, in the rows of the second.
template <class RankOf>
std::pair<Tensor<double>, Tensor<double>> largest_eigenpairs(Tensor<double> g,
                                                             const RankOf& rank_of) {
  const Index n = g.size(0);
  blas::Tridiagonal reduced = blas::sytrd(n, g.data(), n);
  Tensor<double> values({n});
  check_converged(blas::sterf(reduced, values.data()));
  const Index rank = rank_of(values);
  Tensor<double> vectors = Tensor<double>::uninitialized({rank, n});
  if (rank > 0) {
    check_converged(blas::stemr(reduced, n - rank, n - 1, vectors.data(), n));
    blas::ormtr(reduced, g.data(), n, rank, vectors.data(), n);
  }
  // Ascending from LAPACK: turned around.
  for (Index i = 0; i < rank / 2; ++i) {
    std::swap_ranges(vectors.data() + i * n, vectors.data() + (i + 1) * n,
                     vectors.data() + (rank - 1 - i) * n);
  }
  return {std::move(values), std::move(vectors)};
}

LowRank<float> by_gram(const Tensor<float>& a, const RankChoice& choice) {
  const bool turned = a.size(0) < a.size(1);
  const TensorView<const float> tall = turned ? a.view().transpose() : a.view();
  const Index n = tall.size(1);
  const auto rank_of = [&](const Tensor<double>& ascending) {
    Tensor<double> values({n});
    for (Index i = 0; i < n; ++i) values(i) = std::sqrt(std::max(ascending(n - 1 - i), 0.0));
    const std::vector<double> squares = squares_of(values);
    const Index rank = std::min(choice.of(squares, sum_of(squares)), n);
    return resolved_rank(values, rank, 3e-7);
  };
  const auto [ascending, vectors] = largest_eigenpairs(blas::gram(tall), rank_of);
  LowRank<float> result;
  result.method = "Gram matrix in double";
  result.rank = vectors.size(0);
  // The space is that of A V, made orthonormal; in it, A is A^T times its basis.
  const Tensor<float> v = rounded<float>(vectors.view());
  Tensor<float> left = Tensor<float>::uninitialized({tall.size(0), result.rank});
  blas::gemm<float>(1, tall, v.view().transpose(), 0, left.view());
  Tensor<float> right(TensorView<const float>(v.view().transpose()));
  orthonormalize(TensorView<const float>(left.view().slice(1, {0, 0})), left.view());
  result.s = Tensor<float>({result.rank});
  for (Index i = 0; i < result.rank; ++i) {
    result.s(i) = static_cast<float>(std::sqrt(std::max(ascending(n - 1 - i), 0.0)));
  }
  if (turned) std::swap(left, right);
  result.u = std::move(left);
  result.vt = Tensor<float>(TensorView<const float>(right.view().transpose()));
  return result;
}

}  // namespace

template <class T>
LowRank<T> exact_low_rank(const Tensor<T>& a, const RankChoice& choice) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::min(a.size(0), a.size(1)) > largest_svd) return by_gram(a, choice);
  }
  return by_svd(a, choice);
}

template LowRank<float> exact_low_rank(const Tensor<float>&, const RankChoice&);
template LowRank<double> exact_low_rank(const Tensor<double>&, const RankChoice&);

}  // namespace eckart
