#include "eckart/linalg/pca_solvers.h"

#include "eckart/blas/lapack.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <cmath>

namespace eckart::detail {
namespace {

// Columns whose sums one thread collects: a few lines of the cache of every row.
constexpr Index column_piece = 256;
// Cumulative shares are compared up to their rounding.
constexpr double share_rounding = 1e-12;

// Reorders `n_found` ascending eigenvalues, with their vectors in rows, to the k largest first.
PcaBasis descending(const Tensor<double>& values, const Tensor<double>& rows, Index n_found,
                    Index k) {
  const Index d = rows.size(1);
  PcaBasis basis;
  basis.values = Tensor<double>({k});
  basis.vectors = Tensor<double>::uninitialized({k, d});
  for (Index i = 0; i < k; ++i) {
    // A covariance has no negative eigenvalue: what is below 0 is rounding.
    basis.values(i) = std::max(values.data()[n_found - 1 - i], 0.0);
    std::copy_n(rows.data() + (n_found - 1 - i) * d, d, basis.vectors.data() + i * d);
  }
  return basis;
}

Tensor<double> reversed(const Tensor<double>& values) {
  Tensor<double> result(values);
  std::reverse(result.data(), result.data() + result.count());
  return result;
}

}  // namespace

template <class T>
ColumnStatistics column_statistics(TensorView<const T> x) {
  const Index n = x.size(0);
  const Index d = x.size(1);
  ColumnStatistics statistics{Tensor<double>({d}), Tensor<double>({d})};
  parallel_for(d, column_piece, [&](Index begin, Index end) {
    double* const mean = statistics.mean.data();
    double* const variance = statistics.variance.data();
    const auto each = [&](const auto& body) {
      for (Index i = 0; i < n; ++i) {
        const T* const row = x.data() + i * x.strides()[0];
        for (Index j = begin; j < end; ++j) body(j, static_cast<double>(row[j * x.strides()[1]]));
      }
    };
    each([&](Index j, double element) { mean[j] += element / static_cast<double>(n); });
    each([&](Index j, double element) {
      const double difference = element - mean[j];
      variance[j] += difference * difference / static_cast<double>(n - 1);
    });
  });
  return statistics;
}

ColumnStatistics column_statistics(const PcaState& state) {
  const Index d = state.mean.count();
  ColumnStatistics statistics{state.mean, Tensor<double>({d})};
  for (Index j = 0; j < d; ++j) {
    statistics.variance(j) = state.scatter(j, j) / static_cast<double>(state.n_samples - 1);
  }
  return statistics;
}

Index PcaCount::of(const Tensor<double>& values) const {
  if (k > 0) return k;
  if (share <= 0) return limit;
  double sum = 0;
  for (Index i = 0; i < limit; ++i) {
    sum += std::max(values(i), 0.0);
    if (sum >= share * total * (1 - share_rounding)) return i + 1;
  }
  return limit;
}

PcaBasis basis_of_covariance(const PcaState& state, const Tensor<double>& divisor,
                             const PcaCount& count) {
  const Index d = state.mean.count();
  Tensor<double> covariance = Tensor<double>::uninitialized({d, d});
  parallel_for(d, 64, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const double row = static_cast<double>(state.n_samples - 1) *
                         (divisor.count() == 0 ? 1.0 : divisor.data()[i]);
      for (Index j = 0; j < d; ++j) {
        covariance.data()[i * d + j] = state.scatter.data()[i * d + j] / row /
                                       (divisor.count() == 0 ? 1.0 : divisor.data()[j]);
      }
    }
  });
  Tensor<double> values({d});
  // A few vectors of many are cheaper alone.
  if (count.k > 0 && 4 * count.k <= d) {
    Tensor<double> work(covariance);
    Tensor<double> rows = Tensor<double>::uninitialized({count.k, d});
    const auto info =
        blas::syevr<double>(d, work.data(), d, d - count.k, d - 1, values.data(), rows.data(), d);
    if (info == 0) return descending(values, rows, count.k, count.k);
  }
  if (blas::syevd<double>(d, covariance.data(), d, values.data()) != 0) {
    throw_argument_error("pca: the eigenvalues of the covariance of x did not converge",
                         "divide x by its largest element");
  }
  return descending(values, covariance, d, count.of(reversed(values)));
}

template <class T, class U>
void centred_rows(TensorView<const T> x, const Tensor<double>& mean, const Tensor<double>& divisor,
                  U* to) {
  const Index d = x.size(1);
  parallel_for(
      x.size(0), std::max<Index>(1, 65536 / std::max<Index>(d, 1)), [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) {
          const T* const row = x.data() + i * x.strides()[0];
          for (Index j = 0; j < d; ++j) {
            const double element = static_cast<double>(row[j * x.strides()[1]]);
            const double difference = element - mean.data()[j];
            to[i * d + j] =
                static_cast<U>(divisor.count() == 0 ? difference : difference / divisor.data()[j]);
          }
        }
      });
}

template <class T>
PcaBasis basis_of_svd(TensorView<const T> x, const Tensor<double>& mean,
                      const Tensor<double>& divisor, const PcaCount& count) {
  const Index n = x.size(0);
  const Index d = x.size(1);
  const Index rank = std::min(n, d);
  // Row-major n x d is LAPACK's d x n: the components are its left vectors.
  Tensor<double> rows = Tensor<double>::uninitialized({n, d});
  centred_rows(x, mean, divisor, rows.data());
  Tensor<double> values({rank});
  Tensor<double> left = Tensor<double>::uninitialized({rank, d});
  Tensor<double> right = Tensor<double>::uninitialized({n, rank});
  if (blas::gesdd<double>(d, n, rows.data(), d, values.data(), left.data(), d, right.data(),
                          rank) != 0) {
    throw_argument_error("pca: the singular values of x did not converge",
                         "solver = covariance needs none");
  }
  for (Index i = 0; i < rank; ++i) values(i) *= values(i) / static_cast<double>(n - 1);
  const Index k = count.of(values);
  PcaBasis basis;
  basis.values = Tensor<double>(values.view().slice(0, {0, k, 1}));
  basis.vectors = Tensor<double>(left.view().slice(0, {0, k, 1}));
  return basis;
}

#define ECKART_INSTANTIATE(T)                                                                   \
  template ColumnStatistics column_statistics(TensorView<const T>);                             \
  template PcaBasis basis_of_svd(TensorView<const T>, const Tensor<double>&,                    \
                                 const Tensor<double>&, const PcaCount&);                       \
  template void centred_rows(TensorView<const T>, const Tensor<double>&, const Tensor<double>&, \
                             double*);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE
template void centred_rows(TensorView<const float>, const Tensor<double>&, const Tensor<double>&,
                           float*);

}  // namespace eckart::detail
