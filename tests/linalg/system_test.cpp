#include "eckart/linalg/system.h"

#include "eckart/core/errors.h"

#include <cmath>

#include "tests/linalg/hard_matrices.h"
#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::product;
using testing::tensor_of;

TEST(ClassifySystem, WorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("classify_system")) {
    SCOPED_TRACE(example.id);
    const LinearSystem<double> system =
        classify_system(tensor_of(example.inputs["a"]), tensor_of(example.inputs["b"]));
    const nlohmann::json& expect = example.expect;
    const testing::Bound bound{.absolute = example.tolerance};
    EXPECT_EQ(to_string(system.solutions), expect["solutions"].get<std::string>());
    if (expect.contains("particular")) {
      EXPECT_TRUE(testing::is_near(system.particular, tensor_of(expect["particular"]), bound));
      EXPECT_EQ(system.least_squares.count(), 0);
    }
    if (expect.contains("least_squares")) {
      EXPECT_TRUE(
          testing::is_near(system.least_squares, tensor_of(expect["least_squares"]), bound));
      EXPECT_EQ(system.particular.count(), 0);
    }
    if (expect.contains("null_space")) {
      const Tensor<double> direction = tensor_of(expect["null_space"]);
      ASSERT_EQ(system.null_space.shape(), (Shape{2, 1}));
      const double length = std::hypot(direction(0, 0), direction(0, 1));
      EXPECT_NEAR(system.null_space(0, 0) * length, direction(0, 0), example.tolerance);
      EXPECT_NEAR(system.null_space(1, 0) * length, direction(0, 1), example.tolerance);
    }
  }
}

template <class T>
void expect_classes() {
  const Tensor<T> tall = testing::random_matrix<T>(30, 12);
  const Tensor<T> wide = testing::random_matrix<T>(12, 30);
  const Tensor<T> x12 = Tensor<T>(Shape{12, 1}, T{1});
  const Tensor<T> x30 = Tensor<T>(Shape{30, 1}, T{1});
  const auto column = [](const Tensor<T>& b) { return b.reshaped(Shape{b.count()}); };
  EXPECT_EQ(classify_system(tall, column(product(tall, x12))).solutions, Solutions::one);
  EXPECT_EQ(classify_system(wide, column(product(wide, x30))).solutions,
            Solutions::infinitely_many);
  EXPECT_EQ(classify_system(tall, column(x30)).solutions, Solutions::none);
  EXPECT_EQ(
      classify_system(wide, column(x30).reshaped(Shape{30}).view().slice(0, {0, 12})).solutions,
      Solutions::infinitely_many);
  const LinearSystem<T> few =
      classify_system(product(testing::random_matrix<T>(20, 4), testing::random_matrix<T>(4, 9, 2)),
                      Tensor<T>(Shape{20}));
  EXPECT_EQ(few.solutions, Solutions::infinitely_many);
  EXPECT_EQ(few.rank, 4);
  EXPECT_EQ(few.null_space.shape(), (Shape{9, 5}));
  EXPECT_EQ(testing::frobenius(few.particular), 0);
}

TEST(ClassifySystem, ConsistentDataWithRoundingHasSolutions) {
  expect_classes<float>();
  expect_classes<double>();
}

TEST(ClassifySystem, DoesNotDependOnTheScale) {
  for (const double scale : {1e-30, 1e30}) {
    const Tensor<double> a =
        Tensor<double>::matrix({{1 * scale, 2 * scale}, {2 * scale, 4 * scale}});
    EXPECT_EQ(classify_system(a, Tensor<double>::vector({3, 6})).solutions,
              Solutions::infinitely_many);
    EXPECT_EQ(classify_system(a, Tensor<double>::vector({3, 7})).solutions, Solutions::none);
  }
}

TEST(ClassifySystem, WithoutEquationsEverythingSolves) {
  const LinearSystem<double> all =
      classify_system(Tensor<double>(Shape{0, 2}), Tensor<double>(Shape{0}));
  EXPECT_EQ(all.solutions, Solutions::infinitely_many);
  EXPECT_TRUE(testing::has_elements(all.null_space.view(), {1, 0, 0, 1}));
  EXPECT_EQ(classify_system(Tensor<double>(Shape{2, 0}), Tensor<double>(Shape{2})).solutions,
            Solutions::one);
}

TEST(ClassifySystem, BadArgumentsAreRefused) {
  const Tensor<double> a({2, 2});
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] { classify_system(a, a); }),
            "classify_system: b is 2x2, but it must be a vector\n"
            "  hint: each column of b is a system of its own: b.select(1, column)");
  EXPECT_EQ(testing::thrown_by<ShapeError>([&] { classify_system(a, Tensor<double>(Shape{3})); }),
            "classify_system: a is 2x2 and b is 3, but b's 3 elements must equal a's 2 rows");
}

}  // namespace
}  // namespace eckart
