#include "eckart/linalg/finite.h"

#include "eckart/core/errors.h"
#include "eckart/core/tensor.h"

#include <limits>
#include <string>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

template <class T>
std::string refusal(TensorView<const T> a) {
  return testing::thrown_by<ArgumentError>([&] { check_finite<T>("svd", "a", a); });
}

TEST(Finite, FiniteArraysPass) {
  check_finite<double>("svd", "a", Tensor<double>::matrix({{1, 2}, {3, 4}}));
  check_finite<double>("svd", "a", Tensor<double>::vector({std::numeric_limits<double>::max()}));
  check_finite<float>("svd", "a", Tensor<float>::vector({std::numeric_limits<float>::lowest()}));
  check_finite<float>("svd", "a", Tensor<float>(Shape{0, 3}));
  check_finite<float>("svd", "a", Tensor<float>(Shape{}, 1.0F));
}

TEST(Finite, TheFirstBadElementIsNamedWithItsPosition) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 2, 3}, {4, 5, nan}, {infinity, 8, 9}});
  EXPECT_EQ(refusal(a.view()), "svd: a has a NaN at (1, 2), but every element must be finite");
  EXPECT_EQ(refusal(a.view().transpose()),
            "svd: a has an Inf at (0, 2), but every element must be finite");
  EXPECT_EQ(refusal(a.view().slice(1, {0, 2})),
            "svd: a has an Inf at (2, 0), but every element must be finite");
}

TEST(Finite, VectorsAndScalarsToo) {
  const Tensor<double> vector = Tensor<double>::vector({1, -infinity});
  const Tensor<double> scalar(Shape{}, nan);
  EXPECT_EQ(refusal(vector.view()), "svd: a has a -Inf at (1), but every element must be finite");
  EXPECT_EQ(refusal(scalar.view()), "svd: a has a NaN, but every element must be finite");
}

TEST(Finite, LargeArraysAreScannedToTheirLastElement) {
  Tensor<float> a(Shape{1 << 9, 1 << 9});
  const TensorView<const float> view = a.view();
  check_finite<float>("svd", "a", view);
  a(511, 511) = std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(view), "svd: a has an Inf at (511, 511), but every element must be finite");
}

}  // namespace
}  // namespace eckart
