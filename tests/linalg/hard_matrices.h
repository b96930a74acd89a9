// Matrices on which factorisations go wrong, and the residuals that show it.
#pragma once

#include "eckart/blas/gemm.h"
#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/random_tensor.h"

namespace eckart::testing {

template <class T>
Tensor<T> product(const Tensor<T>& a, const Tensor<T>& b) {
  Tensor<T> c({a.size(0), b.size(1)});
  blas::gemm(T{1}, a.view(), b.view(), T{0}, c.view());
  return c;
}

template <class T>
Tensor<T> transposed(const Tensor<T>& a) {
  return Tensor<T>(a.view().transpose());
}

template <class T>
double frobenius(const Tensor<T>& a) {
  double sum = 0;
  for_each_element([&](const T& x) { sum = std::hypot(sum, static_cast<double>(x)); }, a.view());
  return sum;
}

/// ||a - b||_F.
template <class T>
double difference(const Tensor<T>& a, const Tensor<T>& b) {
  Tensor<double> gap(a.shape().without_names());
  for_each_element([](double& to, const T& x,
                      const T& y) { to = static_cast<double>(x) - static_cast<double>(y); },
                   gap.view(), a.view(), b.view());
  return frobenius(gap);
}

template <class T>
Tensor<T> identity(Index n) {
  Tensor<T> one({n, n});
  for (Index i = 0; i < n; ++i) one(i, i) = T{1};
  return one;
}

/// ||q^T q - 1||_F.
template <class T>
double departure(const Tensor<T>& q) {
  return difference(product(transposed(q), q), identity<T>(q.size(1)));
}

template <class T>
double eps() {
  return static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
Tensor<T> matrix_of(Index m, Index n, const auto& element) {
  Tensor<T> a({m, n});
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      a(i, j) = static_cast<T>(element(static_cast<double>(i), static_cast<double>(j)));
    }
  }
  return a;
}

template <class T>
Tensor<T> hilbert(Index n) {
  return matrix_of<T>(n, n, [](double i, double j) { return 1 / (i + j + 1); });
}

template <class T>
struct HardMatrix {
  std::string name;
  Tensor<T> a;
};

/// Square ones, of 1 to 40 rows.
template <class T>
std::vector<HardMatrix<T>> hard_square_matrices() {
  std::vector<HardMatrix<T>> list;
  list.push_back({"1x1", Tensor<T>({1, 1}, T{-3})});
  list.push_back({"Hilbert", hilbert<T>(12)});
  list.push_back({"Vandermonde",
                  matrix_of<T>(10, 10, [](double i, double j) { return std::pow(i / 10, j); })});
  list.push_back({"Kahan", matrix_of<T>(30, 30, [](double i, double j) {
                    const double s = std::sin(1.2), c = std::cos(1.2);
                    return std::pow(s, i) * (i == j ? 1 : (j > i ? -c : 0));
                  })});
  const Tensor<T> random = random_matrix<T>(20, 20);
  list.push_back({"random", random});
  const auto graded = [&](bool rows) {
    Tensor<T> a = random;
    for (Index i = 0; i < 20; ++i) {
      for (Index j = 0; j < 20; ++j) {
        a(i, j) *= static_cast<T>(std::pow(10.0, -static_cast<double>(rows ? i : j)));
      }
    }
    return a;
  };
  list.push_back({"graded rows", graded(true)});
  list.push_back({"graded columns", graded(false)});
  list.push_back({"repeated values", identity<T>(13)});
  list.push_back({"clustered values", matrix_of<T>(9, 9, [](double i, double j) {
                    return (i == j ? 1 : 0) + 1e-6 * std::cos(i * j);
                  })});
  const auto scaled = [&](double scale) {
    return matrix_of<T>(20, 20, [&](double i, double j) {
      return scale * static_cast<double>(random(static_cast<Index>(i), static_cast<Index>(j)));
    });
  };
  list.push_back({"tiny", scaled(1e-30)});
  list.push_back({"huge", scaled(1e30)});
  list.push_back({"rank 5", product(random_matrix<T>(20, 5, 2), random_matrix<T>(5, 20, 3))});
  list.push_back({"zero", Tensor<T>(Shape{4, 4})});
  return list;
}

/// The same and other shapes.
template <class T>
std::vector<HardMatrix<T>> hard_matrices() {
  std::vector<HardMatrix<T>> list = hard_square_matrices<T>();
  for (const auto& [m, n] : std::vector<std::pair<Index, Index>>{
           {1, 7}, {7, 1}, {50, 7}, {7, 50}, {33, 17}, {0, 3}, {3, 0}, {0, 0}}) {
    list.push_back({std::to_string(m) + "x" + std::to_string(n), random_matrix<T>(m, n)});
  }
  return list;
}

}  // namespace eckart::testing
