#include "eckart/blas/row_products.h"

#include "eckart/blas/threads.h"
#include "eckart/core/tensor.h"

#include <cmath>
#include <limits>
#include <string>

#include "tests/random_tensor.h"
#include <gtest/gtest.h>

namespace eckart::blas {
namespace {

using testing::random_matrix;

// |error| <= (k + 2) u sum |terms| for any order of sums (Higham, Accuracy and Stability, 3.1).
template <class T>
void expect_sum(T actual, double sum, double absolute, Index k) {
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  EXPECT_NEAR(static_cast<double>(actual), sum, static_cast<double>(k + 2) * unit * absolute);
}

template <class T>
void check_gram(Index m, Index n) {
  SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n));
  const Tensor<T> a = random_matrix<T>(m, n, 1);
  Tensor<T> c({n, n}, T{7});
  with_own_threads([&] { gram_lower(m, n, a.data(), c.data()); });
  const Index step = n > 100 ? 97 : 1;  // of a large one, some elements of every tile
  for (Index i = 0; i < n; i += step) {
    for (Index j = 0; j <= i; j += step) {
      double sum = 0, absolute = 0;
      for (Index p = 0; p < m; ++p) {
        const double term = static_cast<double>(a(p, i)) * static_cast<double>(a(p, j));
        sum += term;
        absolute += std::abs(term);
      }
      expect_sum(c(i, j), sum, absolute, m);
    }
  }
}

TEST(RowProducts, TheLowerTriangleIsTheGramMatrix) {
  for (const Index m : {0, 1, 5}) {
    for (const Index n : {1, 2, 33, 1024, 1100}) {
      check_gram<float>(m, n);
      check_gram<double>(m, n);
    }
  }
  gram_lower<float>(3, 0, nullptr, nullptr);
}

template <class T>
void check_rows(Index m, Index n, Index k) {
  SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(k) + " by " + std::to_string(n));
  // Rows apart by more than their lengths: what lies between is left alone.
  const Tensor<T> a = random_matrix<T>(m, k + 2, 2);
  const Tensor<T> b = random_matrix<T>(n, k + 1, 3);
  Tensor<T> c({m, n + 3}, T{7});
  with_own_threads([&] {
    multiply_rows<T>({m, n, k, a.data(), k + 2, b.data(), k + 1, c.data(), n + 3});
  });
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      double sum = 0, absolute = 0;
      for (Index p = 0; p < k; ++p) {
        const double term = static_cast<double>(a(i, p)) * static_cast<double>(b(j, p));
        sum += term;
        absolute += std::abs(term);
      }
      expect_sum(c(i, j), sum, absolute, k);
    }
    for (Index j = n; j < n + 3; ++j) EXPECT_EQ(c(i, j), T{7});
  }
}

TEST(RowProducts, OfEveryShapeAreThoseOfTheirRows) {
  for (const Index m : {0, 1, 7}) {
    for (const Index n : {0, 1, 10}) {
      for (const Index k : {0, 1, 13}) {
        check_rows<float>(m, n, k);
        check_rows<double>(m, n, k);
      }
    }
  }
}

}  // namespace
}  // namespace eckart::blas
