#include "eckart/linalg/singular_values.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/errors.h"
#include "eckart/core/random.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

// A Householder reflection: orthogonal, dense.
Tensor<double> reflection(Index n, std::uint64_t seed) {
  Tensor<double> v({n});
  RandomStream(seed).fill_normal(std::span<double>(v.data(), static_cast<std::size_t>(n)));
  double squared = 0;
  for (Index i = 0; i < n; ++i) squared += v(i) * v(i);
  Tensor<double> result({n, n});
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) result(i, j) = (i == j ? 1 : 0) - 2 * v(i) * v(j) / squared;
  }
  return result;
}

// An m x n matrix with values(i) on its diagonal between two reflections.
template <class T>
Tensor<T> with_values(Index m, Index n, const Tensor<double>& values) {
  Tensor<double> left = reflection(m, 1);
  Tensor<double> middle({m, n});
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < values.count(); ++j) middle(i, j) = left(i, j) * values(j);
  }
  Tensor<double> product({m, n});
  blas::gemm<double>(1, middle, reflection(n, 2), 0, product.view());
  Tensor<T> result({m, n});
  for (Index i = 0; i < product.count(); ++i) result.data()[i] = static_cast<T>(product.data()[i]);
  return result;
}

Tensor<double> geometric(Index count, double ratio) {
  Tensor<double> values({count});
  for (Index i = 0; i < count; ++i) values(i) = std::pow(ratio, static_cast<double>(i));
  return values;
}

template <class T>
class SingularValuesOf : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SingularValuesOf, Floats);

TYPED_TEST(SingularValuesOf, AMatrixWithGivenOnesAreThose) {
  using T = TypeParam;
  for (const auto& [m, n] :
       {std::array<Index, 2>{300, 300}, {310, 270}, {270, 310}, {40, 30}, {1, 5}, {5, 1}}) {
    const Tensor<double> expected = geometric(std::min(m, n), 0.98);
    const SingularValues found = singular_values(with_values<T>(m, n, expected));
    // Rounding the entries to T moves a value by less than eps / 2 times the Frobenius norm (Weyl);
    // the method adds at most 1e-7 (float) or 1e-14 (double) of the largest, which is 1.
    const double unit = static_cast<double>(std::numeric_limits<T>::epsilon());
    const double bound = unit * 8 + (std::is_same_v<T, float> ? 1e-7 : 1e-14);
    EXPECT_TRUE(testing::is_near(found.values, expected, {.absolute = bound})) << m << "x" << n;
  }
}

TYPED_TEST(SingularValuesOf, ATransposeAndASlicedViewAreTheMatrixs) {
  using T = TypeParam;
  const Tensor<T> a = with_values<T>(600, 280, geometric(280, 0.99));
  const TensorView<const T> view = a.view().slice(0, {.step = 2});
  const SingularValues of_copy = singular_values(Tensor<T>(view));
  EXPECT_TRUE(testing::is_near(singular_values(view).values, of_copy.values, {.absolute = 1e-7}));
  EXPECT_TRUE(testing::is_near(singular_values(view.transpose()).values, of_copy.values,
                               {.absolute = 1e-7}));
}

TYPED_TEST(SingularValuesOf, ScalesFromTinyToHugeOnlyScaleThem) {
  using T = TypeParam;
  const Tensor<T> a = with_values<T>(280, 280, geometric(280, 0.95));
  const SingularValues reference = singular_values(a);
  for (const double scale : {1e-30, 1e30}) {
    Tensor<T> scaled(a);
    for (Index i = 0; i < a.count(); ++i) scaled.data()[i] *= static_cast<T>(scale);
    const SingularValues found = singular_values(scaled);
    // Each entry of the scaled copy is rounded once more.
    const double bound = 1e-7 + 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (Index i = 0; i < 280; ++i) {
      ASSERT_NEAR(found.values(i) / scale, reference.values(i), bound);
    }
  }
}

TEST(SingularValues, OfALargeFloatMatrixThatAreTinyAreFlagged) {
  const Tensor<float> large = with_values<float>(300, 300, geometric(300, 0.9));
  const SingularValues of_large = singular_values(large);
  EXPECT_EQ(of_large.method, "Gram matrix in double");
  EXPECT_NEAR(of_large.floor, 3e-7, 1e-9);
  const SingularValues of_small = singular_values(with_values<float>(30, 30, geometric(30, 0.9)));
  EXPECT_EQ(of_small.method, "svd in double");
  EXPECT_EQ(of_small.floor, 0);
}

TEST(SingularValues, OfARepeatedColumnResolveThatOneIsZero) {
  Tensor<float> a({280, 260});
  RandomStream(3).fill_normal(std::span<float>(a.data(), static_cast<std::size_t>(a.count())));
  for (Index i = 0; i < 280; ++i) a(i, 259) = a(i, 0);
  const SingularValues found = singular_values(a);
  EXPECT_LT(found.values(259), 1e-7 * found.values(0));
  EXPECT_GT(found.values(258), found.floor);
}

TEST(SingularValues, OfSimpleMatricesAreKnown) {
  EXPECT_TRUE(testing::has_elements(
      singular_values(Tensor<double>::matrix({{3, 0}, {0, -4}})).values.view(), {4, 3}));
  EXPECT_EQ(singular_values(Tensor<float>({0, 3})).values.count(), 0);
  EXPECT_EQ(singular_values(Tensor<float>({3, 0})).values.count(), 0);
  EXPECT_TRUE(testing::has_elements(singular_values(Tensor<float>({2, 3})).values.view(), {0, 0}));
  const Tensor<float> zero({300, 300});
  EXPECT_EQ(singular_values(zero).values(0), 0);
}

TEST(SingularValues, RefuseWhatHasNone) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              singular_values(Tensor<float>({2, 3, 4}));
            }),
            "singular_values: a is 2x3x4, but must be a matrix, with two axes");
  Tensor<double> a({2, 2});
  a(1, 0) = std::numeric_limits<double>::infinity();
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { singular_values(a); }),
            "singular_values: a has an Inf at (1, 0), but every element must be finite");
}

}  // namespace
}  // namespace eckart
