#include "eckart/linalg/norms.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"

#include <cmath>
#include <limits>
#include <span>

#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::tensor_of;
using testing::thrown_by;
using testing::worked_examples;

TEST(NormOfAVector, IsThatOfTheWorkedExamples) {
  for (const auto& example : worked_examples("norm")) {
    EXPECT_NEAR(
        norm(tensor_of(example.inputs["x"]), parse_norm(example.inputs["ord"].get<std::string>())),
        example.expect.get<double>(), example.tolerance)
        << example.id;
  }
  EXPECT_EQ(norm(Tensor<float>::vector({3, -4})), 5);
}

TEST(NormOfAVector, NeitherOverflowsNorUnderflows) {
  for (const double scale : {1e-320, 1e-300, 1e-160, 1e-30, 1e30, 1e160, 1e300, 3e307}) {
    // A subnormal number has as many digits as it is above 5e-324.
    const double bound = scale < 1e-310 ? 1e-3 : 1e-14;
    EXPECT_NEAR(norm(Tensor<double>::vector({3 * scale, 4 * scale})) / scale, 5, bound) << scale;
  }
  for (const float scale : {1e-30F, 1e30F, 5e37F}) {
    EXPECT_NEAR(norm(Tensor<float>::vector({3 * scale, 4 * scale})) / static_cast<double>(scale), 5,
                1e-6);
  }
  EXPECT_EQ(norm(Tensor<float>::vector({3e38F, 3e38F})),
            std::hypot(static_cast<double>(3e38F), static_cast<double>(3e38F)));
}

TEST(NormOfAVector, OfAMillionFloatsIsRightToDouble) {
  const Index n = 1'000'000;
  const Tensor<float> x({n}, 0.1F);
  EXPECT_NEAR(norm(x), 1000 * static_cast<double>(0.1F), 1e-11);
  EXPECT_NEAR(norm(x, Norm::one), static_cast<double>(n) * static_cast<double>(0.1F), 1e-8);
  EXPECT_EQ(norm(x, Norm::infinity), static_cast<double>(0.1F));
}

TEST(NormOfAVector, FindsTheLargestWhereverItStands) {
  for (const Index n : {1, 5, 16, 33, 5000, 70'000}) {
    for (const Index at : {Index{0}, n / 2, n - 1}) {
      Tensor<double> x({n}, 1.0);
      x(at) = -2;
      EXPECT_EQ(norm(x, Norm::infinity), 2);
      EXPECT_EQ(norm(x, Norm::one), static_cast<double>(n + 1));
      Tensor<float> y({n}, 0.5F);
      y(at) = -3;
      EXPECT_EQ(norm(y, Norm::infinity), 3);
    }
  }
}

TEST(NormOfAVector, OfNanIsNanAndOfInfinityInfinite) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Norm kind : {Norm::one, Norm::two, Norm::infinity}) {
    EXPECT_TRUE(std::isnan(norm(Tensor<double>::vector({1, -nan, infinity}), kind)))
        << to_string(kind);
    EXPECT_EQ(norm(Tensor<double>::vector({1, -infinity}), kind), infinity) << to_string(kind);
    EXPECT_EQ(norm(Tensor<double>({0}), kind), 0) << to_string(kind);
  }
}

TEST(NormOfAVector, GivesTheSameBitsForEveryNumberOfThreads) {
  Tensor<double> x({400'000});
  RandomStream(3).fill_normal(std::span<double>(x.data(), 400'000));
  set_thread_count(1);
  const double one = norm(x);
  set_thread_count(4);
  EXPECT_EQ(norm(x), one);
  set_thread_count(0);
}

TEST(NormOfAMatrix, IsWhatItIsCalled) {
  const Tensor<double> a = Tensor<double>::matrix({{1, -2}, {3, 4}});
  EXPECT_DOUBLE_EQ(norm(a), std::sqrt(30.0));
  EXPECT_DOUBLE_EQ(norm(a, Norm::frobenius), std::sqrt(30.0));
  EXPECT_EQ(norm(a, Norm::one), 6);
  EXPECT_EQ(norm(a, Norm::infinity), 7);
  // a a^T = [[5, -5], [-5, 25]]: eigenvalues 15 +- sqrt(125).
  const double s1 = std::sqrt(15 + std::sqrt(125.0));
  const double s2 = std::sqrt(15 - std::sqrt(125.0));
  EXPECT_NEAR(norm(a, Norm::spectral), s1, 1e-14);
  EXPECT_NEAR(norm(a, Norm::two), s1, 1e-14);
  EXPECT_NEAR(norm(a, Norm::nuclear), s1 + s2, 1e-14);
}

TEST(NormOfAMatrix, OfViewsAndOddShapes) {
  Tensor<double> a({37, 611});
  RandomStream(5).fill_normal(std::span<double>(a.data(), static_cast<std::size_t>(a.count())));
  const auto t = a.view().transpose();
  EXPECT_EQ(norm(a, Norm::one), norm(t, Norm::infinity));
  EXPECT_EQ(norm(t, Norm::one), norm(a, Norm::infinity));
  EXPECT_NEAR(norm(a), norm(t), 1e-12);
  EXPECT_NEAR(norm(a, Norm::nuclear), norm(t, Norm::nuclear), 1e-10);
  double largest = 0;
  double squares = 0;
  const auto part = a.view().slice(1, {.begin = 3, .step = 7});
  for (Index i = 0; i < 37; ++i) {
    double row = 0;
    for (Index j = 0; j < part.size(1); ++j) {
      row += std::abs(part(i, j));
      squares += part(i, j) * part(i, j);
    }
    largest = std::max(largest, row);
  }
  EXPECT_NEAR(norm(part, Norm::infinity), largest, 1e-12);
  EXPECT_NEAR(norm(part), std::sqrt(squares), 1e-12);
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 9}, Shape{9, 1}}) {
    // Of one row, one column, one element: the vector's length, and one singular value.
    const Tensor<double> x(shape, 2.0);
    const double length = 2 * std::sqrt(static_cast<double>(shape.count()));
    EXPECT_NEAR(norm(x, Norm::spectral), length, 1e-14);
    EXPECT_NEAR(norm(x, Norm::nuclear), length, 1e-14);
  }
  for (const Norm kind :
       {Norm::one, Norm::infinity, Norm::frobenius, Norm::nuclear, Norm::spectral}) {
    EXPECT_EQ(norm(Tensor<float>({0, 4}), kind), 0) << to_string(kind);
    EXPECT_EQ(norm(Tensor<float>({4, 0}), kind), 0) << to_string(kind);
  }
}

TEST(NormOfAMatrix, KnowsNoScale) {
  for (const double scale : {1e-30, 1e30}) {
    const Tensor<float> a({3, 3}, static_cast<float>(scale));
    for (const Norm kind :
         {Norm::one, Norm::infinity, Norm::frobenius, Norm::nuclear, Norm::spectral}) {
      // All of them are 3 for a matrix of ones; 1e-30 is a float to 6e-8.
      EXPECT_NEAR(norm(a, kind) / scale, 3, 3e-7) << to_string(kind);
    }
  }
}

TEST(NormOfAMatrix, OfAHilbertMatrixIsKnown) {
  Tensor<double> hilbert({8, 8});
  for (Index i = 0; i < 8; ++i) {
    for (Index j = 0; j < 8; ++j) hilbert(i, j) = 1.0 / static_cast<double>(i + j + 1);
  }
  // Positive definite: the singular values add up to the trace, 1 + 1/3 + … + 1/15.
  double trace = 0;
  for (Index i = 0; i < 8; ++i) trace += hilbert(i, i);
  EXPECT_NEAR(norm(hilbert, Norm::nuclear), trace, 8 * 0x1p-52 * trace);
  EXPECT_NEAR(norm(hilbert, Norm::spectral), 1.6959389969219497, 1e-14);
}

TEST(NormOfAMatrix, RefusesWhatItHasNot) {
  Tensor<double> a({2, 2}, 1.0);
  a(1, 0) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(norm(a)));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { norm(a, Norm::nuclear); }),
            "norm: a has a NaN at (1, 0), but every element must be finite");
  EXPECT_EQ(thrown_by<ShapeError>([] { norm(Tensor<double>({3}), Norm::spectral); }),
            "norm: a is 3, which has the norms 1, 2 and inf, but not the norm spectral");
  EXPECT_EQ(thrown_by<ShapeError>([] {
              norm(Tensor<double>({2, 3, 4}), Norm::one);
            }),
            "norm: a is 2x3x4, which has the norm fro, but not the norm 1");
  EXPECT_DOUBLE_EQ(norm(Tensor<double>({2, 3, 4}, 1.0)), std::sqrt(24.0));
}

TEST(VectorNorms, AreTakenAlongAnAxis) {
  const Tensor<double> a = Tensor<double>::matrix({{3, 4}, {-6, 8}}).named({"token", "d_model"});
  EXPECT_TRUE(has_elements(vector_norms(a, 1).view(), {5, 10}));
  EXPECT_EQ(vector_norms(a, "d_model").shape(), Shape({2}, {"token"}));
  EXPECT_TRUE(has_elements(vector_norms(a, "token", Norm::one).view(), {9, 12}));
  EXPECT_TRUE(has_elements(vector_norms(a, -2, Norm::infinity).view(), {6, 8}));
  EXPECT_EQ(vector_norms(Tensor<float>({3, 0}), 1).shape(), Shape({3}));
  EXPECT_TRUE(has_elements(vector_norms(Tensor<float>({3, 0}), 1).view(), {0, 0, 0}));
  EXPECT_EQ(*vector_norms(Tensor<float>::vector({3, 4}), 0).data(), 5);
  EXPECT_EQ(thrown_by<ShapeError>([&] { vector_norms(a, 1, Norm::nuclear); }),
            "norm: a is 2x2 (token, d_model), whose vectors along an axis have the norms 1, 2 and "
            "inf, but not the norm nuc");
  EXPECT_THROW(vector_norms(a, 2), ShapeError);
}

TEST(Norm, HasTheNamesOfNumpy) {
  for (const Norm kind :
       {Norm::one, Norm::two, Norm::infinity, Norm::frobenius, Norm::nuclear, Norm::spectral}) {
    EXPECT_EQ(parse_norm(to_string(kind)), kind);
  }
  EXPECT_FALSE(parse_norm("3"));
}

}  // namespace
}  // namespace eckart
