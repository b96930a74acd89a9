#include "eckart/linalg/eigh.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/linalg/hard_matrices.h"
#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::departure;
using testing::difference;
using testing::eps;
using testing::frobenius;
using testing::product;
using testing::tensor_of;

template <class T>
class EighOf : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(EighOf, Types);

TEST(Eigh, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("eigh")) {
    const Eigh<double> found = eigh(tensor_of(example.inputs["a"]));
    const testing::Bound bound{.absolute = example.tolerance};
    EXPECT_TRUE(testing::is_near(found.values, tensor_of(example.expect["values"]), bound));
    Tensor<double> magnitudes = found.vectors;
    for_each_element([](double& x) { x = std::abs(x); }, magnitudes.view());
    EXPECT_TRUE(testing::is_near(magnitudes, tensor_of(example.expect["vectors_abs"]), bound));
  }
}

TEST(Eigh, WorkedShareOfTheLargestValue) {
  for (const testing::WorkedExample& example : testing::worked_examples("eigh_share")) {
    const Tensor<double> values = eigh(tensor_of(example.inputs["a"])).values;
    double sum = 0;
    for (Index i = 0; i < values.count(); ++i) sum += values(i);
    EXPECT_NEAR(values(values.count() - 1) / sum, example.expect.get<double>(), example.tolerance);
  }
}

template <class T>
Tensor<T> symmetric_part(const Tensor<T>& a) {
  Tensor<T> s = a;
  for (Index i = 0; i < a.size(0); ++i) {
    for (Index j = 0; j < a.size(0); ++j) s(i, j) = (a(i, j) + a(j, i)) / 2;
  }
  return s;
}

template <class T>
void expect_pairs(const Tensor<T>& a, const Eigh<T>& found) {
  // Backward error and departure from orthonormality: small multiples of n eps (LAPACK Users' Guide,
  // section 4.7).
  const double bound = 20 * static_cast<double>(a.size(0)) * eps<T>();
  Tensor<T> scaled = found.vectors;
  for (Index row = 0; row < scaled.size(0); ++row) {
    for (Index column = 0; column < scaled.size(1); ++column)
      scaled(row, column) *= found.values(column);
  }
  EXPECT_LE(difference(product(a, found.vectors), scaled), bound * frobenius(a));
  EXPECT_LE(departure(found.vectors), bound);
  EXPECT_TRUE(std::is_sorted(found.values.data(), found.values.data() + found.values.count()));
}

TYPED_TEST(EighOf, HardMatricesFitsWithOrthonormalVectors) {
  using T = TypeParam;
  for (const auto& [name, matrix] : testing::hard_square_matrices<T>()) {
    SCOPED_TRACE(name);
    const Tensor<T> a = symmetric_part(matrix);
    const Index n = a.size(0);
    const Eigh<T> all = eigh(a);
    ASSERT_EQ(all.vectors.shape(), (Shape{n, n}));
    expect_pairs(a, all);
    for (const Index k : {Index{0}, Index{1}, n / 2, n}) {
      for (const Which which : {Which::largest, Which::smallest}) {
        const Eigh<T> some = eigh(a, {.k = k, .which = which});
        ASSERT_EQ(some.values.shape(), (Shape{k}));
        ASSERT_EQ(some.vectors.shape(), (Shape{n, k}));
        expect_pairs(a, some);
        const Index first = which == Which::largest ? n - k : 0;
        EXPECT_TRUE(
            testing::is_near(some.values.view(), all.values.view().slice(0, {first, first + k}),
                             {.absolute = 20 * static_cast<double>(n) * eps<T>() * frobenius(a)}));
      }
    }
  }
}

TEST(Eigh, OfTheSecondDifferenceMatrixIsKnown) {
  // 2 on the diagonal, -1 beside it: values 2 - 2 cos(k pi / (n + 1)).
  constexpr Index n = 50;
  Tensor<double> a({n, n});
  for (Index i = 0; i < n; ++i) {
    a(i, i) = 2;
    if (i > 0) a(i, i - 1) = a(i - 1, i) = -1;
  }
  const Tensor<double> values = eigh(a).values;
  for (Index i = 0; i < n; ++i) {
    EXPECT_NEAR(values(i), 2 - 2 * std::cos(static_cast<double>(i + 1) * M_PI / (n + 1)), 1e-14);
  }
}

TEST(Eigh, TheLargestComponentOfEachVectorIsPositive) {
  const Eigh<double> found = eigh(Tensor<double>::matrix({{2, 1}, {1, 2}}));
  const double half = std::sqrt(0.5);
  EXPECT_TRUE(testing::is_near(found.vectors, Tensor<double>::matrix({{half, half}, {-half, half}}),
                               {.absolute = 1e-15}));
}

TEST(Eigh, NearTheEndsOfTheRangeIsThatOfTheScaledMatrix) {
  const Tensor<double> a = symmetric_part(testing::random_matrix<double>(11, 11));
  const Tensor<double> values = eigh(a).values;
  for (const double scale : {0x1p-1000, 0x1p1000}) {
    Tensor<double> scaled = a;
    for_each_element([&](double& x) { x *= scale; }, scaled.view());
    for (Tensor<double> found : {eigh(scaled).values, eigh(scaled, {.k = 10}).values}) {
      for_each_element([&](double& x) { x /= scale; }, found.view());
      EXPECT_TRUE(testing::is_near(found.view(),
                                   std::as_const(values).view().slice(0, {11 - found.count(), 11}),
                                   {.absolute = 100 * eps<double>()}));
    }
  }
}

TEST(Eigh, OfNothingIsNothing) {
  const Eigh<float> found = eigh(Tensor<float>(Shape{0, 0}));
  EXPECT_EQ(found.values.shape(), (Shape{0}));
  EXPECT_EQ(found.vectors.shape(), (Shape{0, 0}));
}

TEST(Eigh, TheNameOfTheRowsStays) {
  const Tensor<float> a = testing::identity<float>(3).named({"d_model", "d_model'"});
  EXPECT_EQ(to_string(eigh(a).vectors.shape()), "3x3 (d_model, component)");
  EXPECT_EQ(to_string(eigh(a, {.k = 2}).values.shape()), "2 (component)");
}

TEST(Eigh, AComputedGramMatrixCountsAsSymmetric) {
  const Tensor<float> b = testing::random_matrix<float>(90, 40);
  Tensor<float> a = product(testing::transposed(b), b);
  a(3, 5) *= 1 + 4 * std::numeric_limits<float>::epsilon();
  EXPECT_NO_THROW(eigh(a));
}

TEST(Eigh, AMatrixThatIsNotSymmetricIsRefusedWithAPair) {
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              eigh(Tensor<double>::matrix({{2, 1}, {1.5, 2}}));
            }),
            "eigh: a has 1 at (0, 1) and 1.5 at (1, 0), but it must be symmetric\n"
            "  hint: eig takes any square matrix; (a + a^T) / 2 is the symmetric part of a");
  Tensor<double> large = testing::identity<double>(70);
  large(65, 2) = 0.5;
  large(40, 39) = 0.25;
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { eigh(large); }),
            "eigh: a has 0 at (2, 65) and 0.5 at (65, 2), but it must be symmetric\n"
            "  hint: eig takes any square matrix; (a + a^T) / 2 is the symmetric part of a");
}

TEST(Eigh, BadArgumentsAreRefused) {
  const Tensor<double> a = testing::identity<double>(3);
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { eigh(a, {.k = 4}); }),
            "eigh: k is 4 and a is 3x3, but k must be from 0 to 3");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { eigh(a, {.k = -1}); }),
            "eigh: k is -1 and a is 3x3, but k must be from 0 to 3");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              eigh(Tensor<double>(Shape{2, 3}));
            }),
            "eigh: a is 2x3, but it must have as many rows as columns\n"
            "  hint: svd takes matrices of any shape");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              eigh(Tensor<double>(Shape{2, 2}, std::numeric_limits<double>::quiet_NaN()));
            }),
            "eigh: a has a NaN at (0, 0), but every element must be finite");
  const float one = 1;
  const TensorView<const float> large(&one, {40000, 40000}, {0, 0});
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { eigh(large); }),
            "eigh: a is 40000x40000, but all values with vectors take at most 32000 rows\n"
            "  hint: with a smaller k it fits");
}

}  // namespace
}  // namespace eckart
