#include "eckart/linalg/eig.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <complex>

#include "tests/linalg/hard_matrices.h"
#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::eps;
using testing::frobenius;
using testing::product;
using testing::tensor_of;

TEST(Eig, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("eig")) {
    SCOPED_TRACE(example.id);
    const Eig<double> found = eig(tensor_of(example.inputs["a"]));
    const Tensor<double> real = tensor_of(example.expect["values_re"]);
    for (Index i = 0; i < real.count(); ++i) {
      EXPECT_NEAR(found.values(i).real(), real(i), example.tolerance);
      if (!example.expect.contains("values_im")) continue;
      EXPECT_NEAR(found.values(i).imag(), tensor_of(example.expect["values_im"])(i),
                  example.tolerance);
    }
    const bool defective = example.id == "eig-defective";
    EXPECT_EQ(found.is_defective, defective);
    EXPECT_EQ(found.n_independent, defective ? 1 : 2);
  }
}

// ||a v - v diag(values)||_F.
template <class T>
double residual(const Tensor<T>& a, const Eig<T>& found) {
  double sum = 0;
  for (Index i = 0; i < a.size(0); ++i) {
    for (Index j = 0; j < a.size(0); ++j) {
      std::complex<double> left = 0;
      for (Index k = 0; k < a.size(0); ++k) {
        left += static_cast<double>(a(i, k)) * std::complex<double>(found.vectors(k, j));
      }
      left -= std::complex<double>(found.vectors(i, j)) * std::complex<double>(found.values(j));
      sum = std::hypot(sum, std::abs(left));
    }
  }
  return sum;
}

template <class T>
void expect_pairs_on_hard_matrices() {
  for (const auto& [name, a] : testing::hard_square_matrices<T>()) {
    SCOPED_TRACE(name);
    const Eig<T> found = eig(a);
    // Each pair is exact for a matrix within a small multiple of n eps ||a|| (backward stability of
    // the QR algorithm).
    EXPECT_LE(residual(a, found), 20 * static_cast<double>(a.size(0)) * eps<T>() * frobenius(a));
    for (Index i = 1; i < a.size(0); ++i) {
      EXPECT_GE(std::abs(found.values(i - 1)), std::abs(found.values(i)));
    }
  }
}

TEST(Eig, OfHardMatricesFits) {
  expect_pairs_on_hard_matrices<float>();
  expect_pairs_on_hard_matrices<double>();
}

TEST(Eig, VectorsHaveNormOneAndALargestComponentThatIsPositive) {
  const Eig<double> found = eig(testing::random_matrix<double>(11, 11));
  for (Index column = 0; column < 11; ++column) {
    double norm = 0;
    std::complex<double> largest = 0;
    for (Index row = 0; row < 11; ++row) {
      norm = std::hypot(norm, std::abs(found.vectors(row, column)));
      if (std::abs(found.vectors(row, column)) > std::abs(largest))
        largest = found.vectors(row, column);
    }
    EXPECT_NEAR(norm, 1, 1e-14);
    EXPECT_GT(largest.real(), 0);
    EXPECT_NEAR(largest.imag(), 0, 1e-15);
  }
}

TEST(Eig, ConjugatePairsStandTogetherWithThePositiveFirst) {
  // The cyclic shift of 5: the fifth roots of 1.
  Tensor<double> shift({5, 5});
  for (Index i = 0; i < 5; ++i) shift(i, (i + 1) % 5) = 2;
  const Eig<double> found = eig(shift);
  for (Index i = 0; i < 5; ++i) EXPECT_NEAR(std::abs(found.values(i)), 2, 1e-14);
  EXPECT_FALSE(found.is_defective);
}

TEST(Eig, DefectiveMatricesAreSaidToBe) {
  // A Jordan block in other coordinates: rounding splits its double value by about 1e-8.
  const Tensor<double> jordan = Tensor<double>::matrix({{2, 1, 0}, {0, 2, 0}, {0, 0, 5}});
  const Tensor<double> basis = Tensor<double>::matrix({{1, 2, 0}, {3, 1, 1}, {1, 0, 2}});
  // basis^-1, by hand: determinant 2 - 12 + 2 = -8.
  const Tensor<double> inverse =
      Tensor<double>::matrix({{-0.25, 0.5, -0.25}, {0.625, -0.25, 0.125}, {0.125, -0.25, 0.625}});
  const Eig<double> found = eig(product(product(basis, jordan), inverse));
  EXPECT_TRUE(found.is_defective);
  EXPECT_EQ(found.n_independent, 2);
  const Eig<float> block = eig(Tensor<float>::matrix({{1, 1, 0}, {0, 1, 1}, {0, 0, 1}}));
  EXPECT_TRUE(block.is_defective);
  EXPECT_EQ(block.n_independent, 1);
}

TEST(Eig, RepeatedValuesWithEnoughVectorsAreNotDefective) {
  EXPECT_FALSE(eig(testing::identity<double>(6)).is_defective);
  EXPECT_FALSE(eig(Tensor<double>(Shape{3, 3})).is_defective);
  EXPECT_FALSE(eig(Tensor<double>::matrix({{2, 1, 1}, {1, 2, 1}, {1, 1, 2}})).is_defective);
}

TEST(Eig, NearlyDependentVectorsOfDistantValuesAreNotDefective) {
  // Values 1 to 30, far apart for a norm of about 200; the vectors' least singular value is below
  // 1e-15 all the same.
  const Tensor<double> a = testing::matrix_of<double>(
      30, 30, [](double i, double j) { return i == j ? i + 1 : (j == i + 1 ? 30 : 0); });
  EXPECT_FALSE(eig(a).is_defective);
}

TEST(Eig, AMatrixWithinRoundingOfADefectiveOneIsSaidToBe) {
  // -2.5e-10 at (1, 0), which is 2.5e-19 of the norm, would make both values 1.5.
  EXPECT_TRUE(eig(Tensor<double>::matrix({{1, 1e9}, {0, 2}})).is_defective);
}

TEST(Eig, NamesAndEmptyMatrices) {
  const Eig<float> found = eig(testing::identity<float>(2).named({"row", "column"}));
  EXPECT_EQ(to_string(found.values.shape()), "2 (component)");
  EXPECT_EQ(to_string(found.vectors.shape()), "2x2 (row, component)");
  const Eig<float> none = eig(Tensor<float>(Shape{0, 0}));
  EXPECT_EQ(none.values.count(), 0);
  EXPECT_FALSE(none.is_defective);
}

TEST(Eig, OtherShapesAreRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              eig(Tensor<double>(Shape{2, 3}));
            }),
            "eig: a is 2x3, but it must have as many rows as columns\n"
            "  hint: svd takes matrices of any shape");
}

}  // namespace
}  // namespace eckart
