#include "eckart/blas/gemm.h"

#include "eckart/core/parallel.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include <gtest/gtest.h>

namespace eckart::blas {
namespace {

using testing::random_matrix;

// alpha a b + beta c, one sum after the other in double, and with absolute values, to which the
// rounding of any order of sums is relative.
struct Reference {
  Tensor<double> value;
  double largest_sum = 0;
};

template <class T>
Reference reference(T alpha, TensorView<const T> a, TensorView<const T> b, T beta,
                    TensorView<const T> c) {
  Reference result{Tensor<double>(c.shape()), 0};
  for (Index i = 0; i < c.size(0); ++i) {
    for (Index j = 0; j < c.size(1); ++j) {
      double sum = 0, absolute = 0;
      for (Index p = 0; p < a.size(1); ++p) {
        const double term = static_cast<double>(a(i, p)) * static_cast<double>(b(p, j));
        sum += term;
        absolute += std::abs(term);
      }
      sum *= static_cast<double>(alpha);
      absolute *= std::abs(static_cast<double>(alpha));
      if (beta != T{0}) {
        sum += static_cast<double>(beta) * static_cast<double>(c(i, j));
        absolute += std::abs(static_cast<double>(beta) * static_cast<double>(c(i, j)));
      }
      result.value(i, j) = sum;
      result.largest_sum = std::max(result.largest_sum, absolute);
    }
  }
  return result;
}

// |error| <= (k + 2) u sum |terms| for any order of sums (Higham, Accuracy and Stability, 3.1).
template <class T>
void expect_product(T alpha, TensorView<const T> a, TensorView<const T> b, T beta,
                    TensorView<T> c) {
  const Reference expected = reference<T>(alpha, a, b, beta, c);
  gemm(alpha, a, b, beta, c);
  const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double bound = static_cast<double>(a.size(1) + 2) * unit * expected.largest_sum;
  EXPECT_TRUE(testing::is_near(TensorView<const T>(c), expected.value.view(), {.absolute = bound}))
      << to_string(a.shape()) << " by " << to_string(b.shape());
}

template <class T>
class Gemm : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, Floats);

TYPED_TEST(Gemm, IsTheProductForEveryShapeAndTransposition) {
  using T = TypeParam;
  constexpr Index sizes[][3] = {{1, 1, 1},      {1, 7, 5},     {7, 1, 5},     {3, 5, 0},
                                {0, 3, 2},      {33, 17, 65},  {130, 300, 9}, {5, 4, 9000},
                                {16, 16, 4097}, {700, 3, 300}, {3, 700, 300}, {67, 70, 66}};
  for (const auto& [m, n, k] : sizes) {
    const Tensor<T> a = random_matrix<T>(m, k, 1);
    const Tensor<T> at = random_matrix<T>(k, m, 2);
    const Tensor<T> b = random_matrix<T>(k, n, 3);
    const Tensor<T> bt = random_matrix<T>(n, k, 4);
    Tensor<T> c = random_matrix<T>(m, n, 5);
    Tensor<T> ct = random_matrix<T>(n, m, 6);
    expect_product<T>(T{1}, a, b, T{0}, c);
    expect_product<T>(T{2}, at.view().transpose(), b, T{1}, c);
    expect_product<T>(T{-1}, a, bt.view().transpose(), T{0.5}, c);
    expect_product<T>(T{1}, at.view().transpose(), bt.view().transpose(), T{0}, c);
    expect_product<T>(T{1}, a, b, T{0.5}, ct.view().transpose());
  }
}

TYPED_TEST(Gemm, TakesAnyStrides) {
  using T = TypeParam;
  const Tensor<T> a = random_matrix<T>(40, 60, 1);
  const Tensor<T> b = random_matrix<T>(60, 80, 2);
  Tensor<T> c = random_matrix<T>(40, 80, 3);
  const auto every_other = [](auto view, Index axis) { return view.slice(axis, {.step = 2}); };
  // Every second row, every second column, both, and a column repeated.
  expect_product<T>(T{1}, every_other(a.view(), 0), b.view(), T{0}, every_other(c.view(), 0));
  expect_product<T>(T{1}, every_other(a.view(), 1), every_other(b.view(), 0), T{1}, c.view());
  expect_product<T>(T{1}, every_other(every_other(a.view(), 0), 1), every_other(b.view(), 0), T{1},
                    every_other(c.view(), 0));
  expect_product<T>(T{1}, a.view(), every_other(b.view(), 1), T{1}, every_other(c.view(), 1));
  const TensorView<const T> column = a.view().slice(1, {0, 1});
  expect_product<T>(T{1}, column.broadcast_to({40, 60}), b.view(), T{0}, c.view());
}

TYPED_TEST(Gemm, DoesNotReadTheResultWhereBetaIsZero) {
  using T = TypeParam;
  const Tensor<T> a = random_matrix<T>(3, 2, 1);
  Tensor<T> c({3, 3}, std::numeric_limits<T>::quiet_NaN());
  expect_product<T>(T{1}, a.view(), a.view().transpose(), T{0}, c.view());
  Tensor<T> empty_sum({2, 2}, std::numeric_limits<T>::quiet_NaN());
  gemm<T>(T{1}, Tensor<T>({2, 0}), Tensor<T>({0, 2}), T{0}, empty_sum);
  EXPECT_TRUE(testing::has_elements(empty_sum.view(), {0, 0, 0, 0}));
}

TYPED_TEST(Gemm, IsTheSameToTheBitForEveryNumberOfThreads) {
  using T = TypeParam;
  for (const auto& [m, n, k] : {std::array<Index, 3>{600, 70, 500}, {48, 64, 20000}}) {
    const Tensor<T> a = random_matrix<T>(m, k, 1);
    const Tensor<T> b = random_matrix<T>(k, n, 2);
    Tensor<T> one({m, n}), many({m, n});
    set_thread_count(1);
    gemm<T>(T{1}, a, b, T{0}, one);
    set_thread_count(5);
    gemm<T>(T{1}, a, b, T{0}, many);
    set_thread_count(0);
    EXPECT_TRUE(testing::is_near(many, one));
  }
}

TYPED_TEST(Gemm, GramIsAccumulatedInDouble) {
  using T = TypeParam;
  for (const auto& [m, n] : {std::array<Index, 2>{1100, 20}, {10, 530}, {1, 3}, {0, 2}, {3, 0}}) {
    const Tensor<T> a = random_matrix<T>(m, n, 1);
    const Tensor<double> gram_of_a = gram<T>(a);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        double sum = 0, absolute = 0;
        for (Index p = 0; p < m; ++p) {
          const double term = static_cast<double>(a(p, i)) * static_cast<double>(a(p, j));
          sum += term;
          absolute += std::abs(term);
        }
        const double unit = std::numeric_limits<double>::epsilon();
        ASSERT_NEAR(gram_of_a(i, j), sum, static_cast<double>(m) * unit * absolute);
        ASSERT_EQ(gram_of_a(i, j), gram_of_a(j, i));
      }
    }
  }
}

}  // namespace
}  // namespace eckart::blas
