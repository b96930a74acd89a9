#include "eckart/linalg/project.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <limits>

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

TEST(Project, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("project")) {
    SCOPED_TRACE(example.id);
    const Tensor<double> onto = tensor_of(example.inputs["onto"]);
    const Projection<double> found = project(tensor_of(example.inputs["a"]), onto);
    const testing::Bound bound{.absolute = example.tolerance};
    EXPECT_TRUE(testing::is_near(found.projection, tensor_of(example.expect["projection"]), bound));
    EXPECT_TRUE(testing::is_near(found.residual, tensor_of(example.expect["residual"]), bound));
    if (example.expect.contains("coefficient_on_unit")) {
      ASSERT_TRUE(found.coefficient_on_unit.has_value());
      EXPECT_NEAR(*found.coefficient_on_unit, example.expect["coefficient_on_unit"].get<double>(),
                  example.tolerance);
      EXPECT_NEAR(found.coefficients(0) * frobenius(onto), *found.coefficient_on_unit,
                  example.tolerance);
    }
  }
}

template <class T>
void expect_projection_onto_columns(const Tensor<T>& onto) {
  const Index n = onto.size(0);
  const Tensor<T> a = testing::random_matrix<T>(n, 1, 7).reshaped(Shape{n});
  const Projection<T> found = project(a, onto);
  const Tensor<T> residual = found.residual.reshaped(Shape{n, 1});
  // Orthogonal to the columns to eps ||a||, and the parts add up; with a margin of 20.
  const double bound = 20 * static_cast<double>(n + onto.size(1)) * eps<T>() * frobenius(a);
  EXPECT_LE(frobenius(product(testing::transposed(onto), residual)), bound * frobenius(onto));
  for (Index i = 0; i < n; ++i) {
    EXPECT_NEAR(static_cast<double>(found.projection(i) + found.residual(i)),
                static_cast<double>(a(i)), bound);
  }
  EXPECT_FALSE(found.coefficient_on_unit.has_value());
  EXPECT_EQ(found.coefficients.shape(), (Shape{onto.size(1)}));
}

TEST(Project, OntoColumnsLeavesAnOrthogonalResidual) {
  expect_projection_onto_columns(testing::random_matrix<double>(30, 5));
  expect_projection_onto_columns(testing::random_matrix<float>(30, 5));
  expect_projection_onto_columns(testing::random_matrix<float>(5, 9));
  expect_projection_onto_columns(testing::random_matrix<double>(9, 1));
  expect_projection_onto_columns(
      product(testing::random_matrix<double>(20, 3), testing::random_matrix<double>(3, 8)));
  expect_projection_onto_columns(Tensor<double>(Shape{4, 2}));
  expect_projection_onto_columns(Tensor<double>(Shape{4, 0}));
}

TEST(Project, OntoNearlyParallelColumnsIsTheWholeSpace) {
  Tensor<double> onto = Tensor<double>::matrix({{1, 1}, {0, 1e-9}, {0, 0}});
  const Projection<double> found = project(Tensor<double>::vector({1, 2, 3}), onto);
  EXPECT_TRUE(
      testing::is_near(found.projection, Tensor<double>::vector({1, 2, 0}), {.absolute = 1e-14}));
  // The second column's factor is 2 / 1e-9; eps times the condition number is 4e-7 of it.
  EXPECT_NEAR(found.coefficients(1) / 2e9, 1, 1e-6);
}

TEST(Project, ASmallResidualIsOrthogonalToItsOwnLength) {
  // a is in the space but for 1e-9 of its length: one pass would leave eps ||a|| of the space in it.
  for (const Index k : {1, 5}) {
    const Tensor<double> onto = testing::random_matrix<double>(30, k);
    const Tensor<double> noise = testing::random_matrix<double>(30, 1, 8);
    Tensor<double> a = product(onto, Tensor<double>(Shape{k, 1}, 1.0));
    for (Index i = 0; i < 30; ++i) a(i, 0) += 1e-9 * noise(i, 0);
    for (const TensorView<const double>& space : {onto.view(), onto.view().select(1, 0)}) {
      if (k > 1 && space.rank() == 1) continue;
      const Tensor<double> residual =
          project(a.reshaped(Shape{30}), space).residual.reshaped(Shape{30, 1});
      EXPECT_LT(frobenius(residual), 1e-8);
      EXPECT_LE(frobenius(product(testing::transposed(onto), residual)),
                20 * 35 * eps<double>() * frobenius(onto) * frobenius(residual));
    }
  }
}

TEST(Project, CoefficientsRebuildTheProjection) {
  const Tensor<double> onto = testing::random_matrix<double>(10, 3).named({"d_model", "feature"});
  const Tensor<double> a = testing::random_matrix<double>(10, 1, 4).reshaped(Shape{10});
  const Projection<double> found = project(a.named({"d_model"}), onto);
  EXPECT_EQ(to_string(found.coefficients.shape()), "3 (feature)");
  EXPECT_EQ(to_string(found.projection.shape()), "10 (d_model)");
  EXPECT_TRUE(testing::is_near(product(onto, found.coefficients.reshaped(Shape{3, 1})),
                               found.projection.reshaped(Shape{10, 1}), {.absolute = 1e-14}));
}

TEST(Project, OntoAVectorOfAnyLengthIsTheSame) {
  for (const double scale : {1e-300, 1e-200, 1.0, 1e200, 1e300}) {
    const Projection<double> found =
        project(Tensor<double>::vector({3, 4}), Tensor<double>::vector({2 * scale, 2 * scale}));
    EXPECT_TRUE(testing::is_near(found.projection, Tensor<double>::vector({3.5, 3.5}),
                                 {.absolute = 1e-15}));
    EXPECT_NEAR(*found.coefficient_on_unit, 7 / std::sqrt(2.0), 1e-14);
  }
  const Projection<float> tiny =
      project(Tensor<float>::vector({3e-30F, 4e-30F}), Tensor<float>::vector({1e30F, 1e30F}));
  EXPECT_TRUE(testing::is_near(tiny.projection, Tensor<float>::vector({3.5e-30F, 3.5e-30F}),
                               {.relative = 1e-6}));
}

TEST(Project, AZeroVectorHasTheProjectionZero) {
  const Projection<double> found =
      project(Tensor<double>::vector({0, 0}), Tensor<double>::vector({1e-300, 0}));
  EXPECT_TRUE(testing::has_elements(found.projection.view(), {0, 0}));
  EXPECT_EQ(*found.coefficient_on_unit, 0);
}

TEST(Project, BadArgumentsAreRefused) {
  const Tensor<double> a = Tensor<double>::vector({1, 2});
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { project(a, Tensor<double>(Shape{2})); }),
            "project: onto is 2 and zero, but a zero vector has no direction");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] { project(a, Tensor<double>(Shape{3})); }),
            "project: a is 2 and onto is 3, but onto's 3 elements must equal a's 2 elements");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] {
              project(a, Tensor<double>(Shape{3, 2}));
            }),
            "project: a is 2 and onto is 3x2, but onto's 3 rows must equal a's 2 elements\n"
            "  hint: with onto transposed it fits: its 3 rows then span the space");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] {
              project(a, Tensor<double>(Shape{1, 2}));
            }),
            "project: a is 2 and onto is 1x2, but onto's 1 row must equal a's 2 elements\n"
            "  hint: with onto transposed it fits: its 1 row then spans the space");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] {
              project(Tensor<double>(Shape{1, 3}), a);
            }),
            "project: a is 1x3 and onto is 2, but a must be a vector\n"
            "  hint: as a vector of 3 elements it is one");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] {
              project(Tensor<double>(Shape{2, 2}), a);
            }),
            "project: a is 2x2 and onto is 2, but a must be a vector\n"
            "  hint: with a and onto swapped it fits");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] {
              project(a, Tensor<double>(Shape{2, 1, 1}));
            }),
            "project: a is 2 and onto is 2x1x1, but onto must be a vector or a matrix");
  EXPECT_EQ(
      testing::thrown_by<ShapeError>([&] { project(a.named({"token"}), a.named({"d_model"})); }),
      "project: a is 2 (token) and onto is 2 (d_model), but onto's rows must be a's axis token");
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] {
              project(a, Tensor<double>::vector({1, std::numeric_limits<double>::infinity()}));
            }),
            "project: onto has an Inf at (1), but every element must be finite");
}

}  // namespace
}  // namespace eckart
