// Matrices whose singular values are known.
#pragma once

#include "eckart/blas/gemm.h"
#include "eckart/blas/lapack.h"
#include "eckart/core/random.h"
#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace eckart::testing {

/// Independent standard normal entries.
template <class T>
Tensor<T> normal_matrix(Index m, Index n, std::uint64_t seed) {
  Tensor<T> a = Tensor<T>::uninitialized({m, n});
  RandomStream(seed).fill_normal(std::span<T>(a.data(), static_cast<std::size_t>(a.count())));
  return a;
}

/// `n` orthonormal rows of `m` numbers (n <= m), at random.
inline Tensor<double> orthonormal_rows(Index n, Index m, std::uint64_t seed) {
  Tensor<double> q = normal_matrix<double>(n, m, seed);
  std::vector<double> tau(static_cast<std::size_t>(n));
  blas::geqrf(m, n, q.data(), m, tau.data());
  blas::orgqr(m, n, n, q.data(), m, tau.data());
  return q;
}

/// An m x n matrix with these min(m, n) singular values, between random singular vectors.
template <class T>
Tensor<T> matrix_with_values(Index m, Index n, const std::vector<double>& values,
                             std::uint64_t seed) {
  const Index k = std::min(m, n);
  Tensor<double> u = orthonormal_rows(k, m, 2 * seed + 1);
  const Tensor<double> v = orthonormal_rows(k, n, 2 * seed + 2);
  for (Index i = 0; i < k; ++i) {
    for (Index j = 0; j < m; ++j) u(i, j) *= values[static_cast<std::size_t>(i)];
  }
  Tensor<double> product({m, n});
  blas::gemm(1.0, TensorView<const double>(u.view()).transpose(),
             TensorView<const double>(v.view()), 0.0, product.view());
  Tensor<T> result = Tensor<T>::uninitialized({m, n});
  for (Index i = 0; i < product.count(); ++i) {
    result.data()[i] = static_cast<T>(product.data()[i]);
  }
  return result;
}

/// `n` values of a function of their position.
template <class F>
std::vector<double> values_by(Index n, const F& value) {
  std::vector<double> values;
  for (Index i = 0; i < n; ++i) values.push_back(value(static_cast<double>(i)));
  return values;
}

}  // namespace eckart::testing
