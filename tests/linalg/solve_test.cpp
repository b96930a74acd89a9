#include "eckart/linalg/solve.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/linalg/hard_matrices.h"
#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::difference;
using testing::eps;
using testing::frobenius;
using testing::product;
using testing::tensor_of;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const std::string solve_rule =
    ", but a x = b has one answer for every b only when no row depends on others\n"
    "  hint: lstsq gives the closest answer, classify_system says whether there is an exact one";

template <class T>
class SolveOf : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(SolveOf, Types);

std::string refusal(const Tensor<double>& a, const Tensor<double>& b,
                    const SolveOptions& options = {}) {
  return testing::thrown_by<ArgumentError>([&] { solve(a, b, options); });
}

TEST(Solve, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("solve")) {
    SCOPED_TRACE(example.id);
    const Tensor<double> a = tensor_of(example.inputs["a"]);
    const Tensor<double> b = tensor_of(example.inputs["b"]);
    if (example.expect == "error") {
      EXPECT_EQ(refusal(a, b), "solve: a is 2x2 and singular: row 2 is 2 times row 1" + solve_rule);
    } else {
      EXPECT_TRUE(testing::is_near(solve(a, b), tensor_of(example.expect),
                                   {.absolute = example.tolerance}));
    }
  }
}

// ||b - a x|| is at most a small multiple of n eps ||a|| ||x|| (Higham, theorem 9.5, with a growth
// factor of at most 3).
template <class T>
void expect_solved(const Tensor<T>& a, const Tensor<T>& x, const Tensor<T>& b) {
  const double bound = 20 * static_cast<double>(a.size(0)) * eps<T>();
  EXPECT_LE(difference(product(a, x), b), bound * frobenius(a) * frobenius(x));
}

TYPED_TEST(SolveOf, HardMatricesHasASmallResidualOrIsRefused) {
  using T = TypeParam;
  int n_solved = 0;
  for (const auto& [name, a] : testing::hard_square_matrices<T>()) {
    SCOPED_TRACE(name);
    const Tensor<T> ones(Shape{a.size(0), 3}, T{1});
    const Tensor<T> b = product(a, ones);
    try {
      expect_solved(a, solve(a, b), b);
      ++n_solved;
    } catch (const ArgumentError& error) {
      const bool may_refuse = name == "Hilbert" || name == "Vandermonde" || name == "Kahan" ||
                              name == "rank 5" || name == "zero" || name == "clustered values";
      EXPECT_TRUE(may_refuse) << error.what();
    }
  }
  // All but these: 1x1, random, graded rows and columns, repeated, tiny, huge.
  EXPECT_GE(n_solved, 7);
}

TYPED_TEST(SolveOf, GradedRowsIsExactInEveryRow) {
  using T = TypeParam;
  // Rows in units from 1 to 1e-19: a 2-norm condition number far beyond 1 / eps, and yet well solved.
  for (const auto& [name, a] : testing::hard_square_matrices<T>()) {
    if (name != "graded rows") continue;
    const Tensor<T> one(Shape{20, 1}, T{1});
    const Tensor<T> x = solve(a, product(a, one));
    // The matrix with its rows scaled is random of 20 rows: its condition number is below 1e3.
    EXPECT_LE(difference(x, one), 1e3 * 20 * eps<T>());
  }
}

TEST(Solve, PositiveDefiniteAgreesWithGeneral) {
  const Tensor<double> root = testing::random_matrix<double>(40, 20);
  const Tensor<double> a = product(testing::transposed(root), root);
  const Tensor<double> b = testing::random_matrix<double>(20, 4, 2);
  const Tensor<double> x = solve(a, b, {.kind = MatrixKind::positive_definite});
  expect_solved(a, x, b);
  EXPECT_TRUE(testing::is_near(x, solve(a, b), {.absolute = 1e-13}));
}

TEST(Solve, PositiveDefiniteInDifferentUnitsIsNotSingular) {
  const Tensor<double> a = Tensor<double>::matrix({{2e-30, 1e-15}, {1e-15, 2}});
  const Tensor<double> x =
      solve(a, Tensor<double>::vector({3e-15, 3}), {.kind = MatrixKind::positive_definite});
  EXPECT_TRUE(testing::is_near(x, Tensor<double>::vector({1e15, 1}), {.relative = 1e-14}));
}

TEST(Solve, TriangularUsesItsTriangleAlone) {
  const Tensor<double> a = Tensor<double>::matrix({{2, 7}, {1, 4}});
  const Tensor<double> b = Tensor<double>::vector({2, 9});
  EXPECT_TRUE(
      testing::has_elements(solve(a, b, {.kind = MatrixKind::lower_triangular}).view(), {1, 2}));
  EXPECT_TRUE(testing::has_elements(solve(a, b, {.kind = MatrixKind::upper_triangular}).view(),
                                    {-6.875, 2.25}));
  EXPECT_TRUE(testing::has_elements(
      solve(a.view().transpose(), b, {.kind = MatrixKind::upper_triangular}).view(),
      {-0.125, 2.25}));
}

TEST(Solve, ViewsAreWhatTheyShow) {
  const Tensor<double> big = testing::random_matrix<double>(21, 30);
  const TensorView<const double> a = big.view().slice(0, {0, 21, 2}).slice(1, {4, 15}).transpose();
  const TensorView<const double> b = big.view().slice(0, {3, 9}).slice(1, {19, 30}).transpose();
  const Tensor<double> x = solve(a, b);
  EXPECT_EQ(x.shape(), (Shape{11, 6}));
  EXPECT_TRUE(testing::is_near(x, solve(Tensor<double>(a), Tensor<double>(b))));
  expect_solved(Tensor<double>(a), x, Tensor<double>(b));
}

TEST(Solve, OfNothingIsNothing) {
  EXPECT_EQ(solve(Tensor<double>(Shape{0, 0}), Tensor<double>(Shape{0, 2})).shape(), (Shape{0, 2}));
  EXPECT_EQ(solve(testing::identity<double>(2), Tensor<double>(Shape{2, 0})).shape(),
            (Shape{2, 0}));
}

TEST(Solve, TheAnswerHasTheNamesOfWhatItStandsFor) {
  const Tensor<double> a = testing::identity<double>(2).named({"equation", "unknown"});
  EXPECT_EQ(to_string(solve(a, Tensor<double>(Shape{2}).named({"equation"})).shape()),
            "2 (unknown)");
  EXPECT_EQ(to_string(solve(a, Tensor<double>(Shape{2, 5}).named({"equation", "case"})).shape()),
            "2x5 (unknown, case)");
  EXPECT_EQ(
      testing::thrown_by<ShapeError>(
          [&] { solve(a, Tensor<double>(Shape{2}).named({"unknown"})); }),
      "solve: a is 2x2 (equation, unknown) and b is 2 (unknown), but b's rows must be the axis "
      "equation of a's rows");
}

TEST(Solve, ASingularMatrixSaysWhichRowDependsOnWhich) {
  const Tensor<double> b = Tensor<double>::vector({1, 2, 3});
  const auto text = [&](const Tensor<double>& a) {
    const std::string message = refusal(a, b);
    return message.substr(0, message.find(", but"));
  };
  EXPECT_EQ(text(Tensor<double>::matrix({{1, 2, 3}, {4, 5, 6}, {5, 7, 9}})),
            "solve: a is 3x3 and singular: row 3 is row 1 + row 2");
  EXPECT_EQ(text(Tensor<double>::matrix({{1, 2, 3}, {0, 0, 0}, {5, 7, 8}})),
            "solve: a is 3x3 and singular: row 2 is zero");
  EXPECT_EQ(text(Tensor<double>::matrix({{1, 0, 3}, {0, 1, 1}, {2, -0.5, 5.5}})),
            "solve: a is 3x3 and singular: row 3 is 2 times row 1 - 0.5 times row 2");
  EXPECT_EQ(text(Tensor<double>::matrix({{1e-200, 2e-200, 0}, {3e200, 6e200, 0}, {0, 0, 1}})),
            "solve: a is 3x3 and singular: row 2 is a multiple of row 1");
}

TEST(Solve, ASingularMatrixOfManyRowsSaysHowManyThereAre) {
  Tensor<double> a = testing::random_matrix<double>(9, 9);
  for (Index column = 0; column < 9; ++column) {
    a(8, column) = 0;
    for (Index row = 0; row < 8; ++row) a(8, column) += a(row, column);
  }
  const std::string message = refusal(a, Tensor<double>(Shape{9}));
  EXPECT_NE(message.find("row 9 is a combination of the 8 rows before it, but"), std::string::npos)
      << message;
}

TEST(Solve, AMatrixThatIsSingularToRoundingIsRefusedWithItsConditionNumber) {
  const std::string message = refusal(testing::hilbert<double>(16), Tensor<double>(Shape{16}, 1.0));
  EXPECT_EQ(
      message.find("solve: a is 16x16 and singular to working precision (reciprocal condition "
                   "number "),
      0U)
      << message;
  EXPECT_NE(message.find(", below 2.22e-16): row "), std::string::npos) << message;
  EXPECT_NE(message.find(solve_rule), std::string::npos) << message;
}

TEST(Solve, WhatIsNotPositiveDefiniteIsRefused) {
  const SolveOptions options{.kind = MatrixKind::positive_definite};
  const Tensor<double> b = Tensor<double>::vector({1, 2});
  EXPECT_EQ(refusal(Tensor<double>::matrix({{1, 2}, {2, 1}}), b, options),
            "solve: a is 2x2 and its pivot 2 is -3 (the leading minor of order 2 is not positive), "
            "but every pivot of a positive definite matrix is above 0\n"
            "  hint: without the kind it takes any square matrix");
  EXPECT_EQ(refusal(Tensor<double>::matrix({{1, 2}, {3, 1}}), b, options),
            "solve: a has 2 at (0, 1) and 3 at (1, 0), but it must be symmetric\n"
            "  hint: without the kind it takes any square matrix");
  EXPECT_EQ(refusal(testing::hilbert<double>(12), Tensor<double>(Shape{12}), options)
                .find("solve: a is 12x12 and singular to working precision"),
            0U);
}

TEST(Solve, ATriangularMatrixWithAZeroIsRefused) {
  EXPECT_EQ(
      refusal(Tensor<double>::matrix({{1, 2}, {3, 0}}), Tensor<double>::vector({1, 2}),
              {.kind = MatrixKind::upper_triangular}),
      "solve: a is 2x2 and singular: it has 0 at (1, 1), but no diagonal element of a "
      "triangular matrix may be 0\n"
      "  hint: lstsq gives the closest answer, classify_system says whether there is an exact "
      "one");
}

TEST(Solve, AnAnswerBeyondTheRangeIsRefused) {
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              solve(Tensor<float>({1, 1}, 1e-30F), Tensor<float>::vector({1e30F}));
            }),
            "solve: b is 1, but the answer exceeds the range of its numbers\n"
            "  hint: double has a range of 1e308");
  EXPECT_EQ(refusal(Tensor<double>({1, 1}, 1e-200), Tensor<double>::vector({1e200})),
            "solve: b is 1, but the answer exceeds the range of its numbers");
}

TEST(Solve, ShapesThatDoNotFitAreRefused) {
  const auto text = [](const Shape& a, const Shape& b) {
    return testing::thrown_by<ShapeError>([&] { solve(Tensor<double>(a), Tensor<double>(b)); });
  };
  EXPECT_EQ(text({2, 3}, {2}),
            "solve: a is 2x3, but it must have as many rows as columns\n"
            "  hint: lstsq solves systems of any shape");
  EXPECT_EQ(text({2, 2}, {3}),
            "solve: a is 2x2 and b is 3, but b's 3 elements must equal a's 2 rows");
  EXPECT_EQ(text({2, 2}, {3, 2}),
            "solve: a is 2x2 and b is 3x2, but b's 3 rows must equal a's 2 rows\n"
            "  hint: with b transposed it fits: x is then 2x3");
  EXPECT_EQ(text({2, 2}, {1, 2}),
            "solve: a is 2x2 and b is 1x2, but b's 1 row must equal a's 2 rows\n"
            "  hint: with b transposed it fits: x is then 2x1");
  EXPECT_EQ(text({2}, {2, 2}),
            "solve: a is 2 and b is 2x2, but a must be a matrix\n"
            "  hint: with a and b swapped it fits: x is then 2");
  EXPECT_EQ(text({3}, {2, 2}), "solve: a is 3 and b is 2x2, but a must be a matrix");
  EXPECT_EQ(text({2, 2}, {2, 1, 1}),
            "solve: a is 2x2 and b is 2x1x1, but b must be a vector or a matrix");
}

TEST(Solve, NumbersThatAreNotFiniteAreRefused) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 2}, {3, nan}});
  const Tensor<double> b = Tensor<double>::vector({1, nan});
  EXPECT_EQ(refusal(a, b), "solve: a has a NaN at (1, 1), but every element must be finite");
  EXPECT_EQ(refusal(testing::identity<double>(2), b),
            "solve: b has a NaN at (1), but every element must be finite");
}

TEST(Inverse, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("inverse")) {
    EXPECT_TRUE(testing::is_near(inverse(tensor_of(example.inputs["a"])), tensor_of(example.expect),
                                 {.absolute = example.tolerance}));
  }
}

TEST(Inverse, OfAnInverseIsTheMatrix) {
  const Tensor<double> a = testing::random_matrix<double>(25, 25).named({"row", "column"});
  const Tensor<double> once = inverse(a);
  EXPECT_EQ(to_string(once.shape()), "25x25 (column, row)");
  // Twice the error of one inversion, which is n eps times the condition number, here below 1e3.
  EXPECT_LE(difference(inverse(once), a), 2e3 * 25 * eps<double>() * frobenius(a));
}

TEST(Inverse, ASingularMatrixIsRefused) {
  EXPECT_EQ(testing::thrown_by<ArgumentError>([] {
              inverse(Tensor<float>::matrix({{1, 2}, {1, 2}}));
            }),
            "inverse: a is 2x2 and singular: row 2 is row 1, but only a matrix with no row that "
            "depends on others has an inverse\n"
            "  hint: pinv gives the pseudo-inverse, lstsq solves without either");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              inverse(Tensor<float>(Shape{1, 2}));
            }),
            "inverse: a is 1x2, but it must have as many rows as columns\n"
            "  hint: pinv gives the pseudo-inverse of a matrix of any shape");
}

TEST(Determinant, OfSmallMatrices) {
  EXPECT_NEAR(determinant(Tensor<double>::matrix({{1, 2}, {3, 4}})), -2, 1e-15);
  EXPECT_DOUBLE_EQ(determinant(Tensor<double>::matrix({{0, 1}, {1, 0}})), -1);
  EXPECT_EQ(determinant(Tensor<double>::matrix({{1, 2}, {2, 4}})), 0);
  EXPECT_EQ(determinant(Tensor<double>(Shape{0, 0})), 1);
  EXPECT_NEAR(determinant(Tensor<float>::matrix({{2, 0, 1}, {1, 3, 2}, {1, 1, 2}})), 6, 5e-6);
}

TEST(Determinant, BeyondTheRangeItIsInfinityOrZeroAndTheLogarithmStays) {
  Tensor<double> a = testing::identity<double>(50);
  for (Index i = 0; i < 50; ++i) a(i, i) = i == 0 ? -1e30 : 1e30;
  EXPECT_EQ(determinant(a), -std::numeric_limits<double>::infinity());
  const LogDeterminant<double> large = log_determinant(a);
  EXPECT_EQ(large.sign, -1);
  EXPECT_NEAR(large.log_abs, 1500 * std::log(10.0), 1e-9);
  for (Index i = 0; i < 50; ++i) a(i, i) = 1e-30;
  EXPECT_EQ(determinant(a), 0);
  EXPECT_NEAR(log_determinant(a).log_abs, -1500 * std::log(10.0), 1e-9);
  EXPECT_EQ(log_determinant(a).sign, 1);
}

TEST(Determinant, OfExtremesThatCancelIsExact) {
  // The product of the diagonal passes 1e600 on its way to 1.
  Tensor<double> a = testing::identity<double>(4);
  a(0, 0) = a(1, 1) = 0x1p1000;
  a(2, 2) = a(3, 3) = 0x1p-1000;
  EXPECT_EQ(determinant(a), 1);
}

TEST(Determinant, OfASingularMatrixHasLogarithmMinusInfinity) {
  const LogDeterminant<float> zero = log_determinant(Tensor<float>(Shape{2, 2}));
  EXPECT_EQ(zero.sign, 0);
  EXPECT_EQ(zero.log_abs, -std::numeric_limits<float>::infinity());
}

TEST(Determinant, OtherShapesAreRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              determinant(Tensor<float>(Shape{1, 2}));
            }),
            "determinant: a is 1x2, but it must have as many rows as columns");
}

}  // namespace
}  // namespace eckart
