#include "eckart/linalg/polar.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/eigh.h"
#include "eckart/linalg/solve.h"

#include <algorithm>
#include <cmath>

#include "tests/linalg/hard_matrices.h"
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
using testing::transposed;

TEST(Polar, OfAScaledRotationIsTheRotationAndTheScale) {
  const Polar<double> factors = polar(Tensor<double>::matrix({{0, -2}, {2, 0}}));
  EXPECT_TRUE(
      testing::is_near(factors.u, Tensor<double>::matrix({{0, -1}, {1, 0}}), {.absolute = 1e-15}));
  EXPECT_TRUE(
      testing::is_near(factors.p, Tensor<double>::matrix({{2, 0}, {0, 2}}), {.absolute = 1e-15}));
}

template <class T>
void expect_polar_on_hard_matrices() {
  for (const auto& [name, a] : testing::hard_matrices<T>()) {
    SCOPED_TRACE(name);
    const Polar<T> factors = polar(a);
    ASSERT_EQ(factors.u.shape(), a.shape());
    ASSERT_EQ(factors.p.shape(), (Shape{a.size(1), a.size(1)}));
    const double bound = 20 * static_cast<double>(std::max(a.size(0), a.size(1))) * eps<T>();
    EXPECT_LE(difference(product(factors.u, factors.p), a), bound * frobenius(a));
    EXPECT_LE(a.size(0) >= a.size(1) ? departure(factors.u) : departure(transposed(factors.u)),
              bound);
    EXPECT_EQ(difference(factors.p, transposed(factors.p)), 0);
    const Tensor<T> values = eigh(factors.p).values;
    if (values.count() > 0) {
      EXPECT_GE(static_cast<double>(values(0)), -bound * frobenius(a));
    }
  }
}

TEST(Polar, OfHardMatricesRebuildsThem) {
  expect_polar_on_hard_matrices<float>();
  expect_polar_on_hard_matrices<double>();
}

TEST(Polar, NamesTravel) {
  const Polar<float> factors =
      polar(testing::random_matrix<float>(4, 3).named({"token", "d_model"}));
  EXPECT_EQ(to_string(factors.u.shape()), "4x3 (token, d_model)");
  EXPECT_EQ(to_string(factors.p.shape()), "3x3 (?, d_model)");
}

// A rotation of 5 dimensions: the orthonormal factor of a random matrix, its determinant made 1.
Tensor<double> rotation_of(Index n) {
  Tensor<double> q = polar(testing::random_matrix<double>(n, n, 8)).u;
  if (determinant(q) < 0) {
    for (Index row = 0; row < n; ++row) q(row, 0) = -q(row, 0);
  }
  return q;
}

TEST(Procrustes, RecoversARotationAndAScale) {
  const Tensor<double> a = testing::random_matrix<double>(30, 5);
  const Tensor<double> rotation = rotation_of(5);
  Tensor<double> b = product(a, rotation);
  const Procrustes<double> plain = procrustes(a, b);
  EXPECT_LE(difference(plain.rotation, rotation), 1e-13);
  EXPECT_EQ(plain.scale, 1);
  EXPECT_LE(plain.residual_norm, 1e-13);
  for_each_element([](double& x) { x *= 2.5; }, b.view());
  const Procrustes<double> scaled = procrustes(a, b, {.scaling = true});
  EXPECT_NEAR(scaled.scale, 2.5, 1e-13);
  EXPECT_LE(scaled.residual_norm, 1e-12);
}

TEST(Procrustes, NoOtherRotationIsNearer) {
  const Tensor<double> a = testing::random_matrix<double>(20, 3);
  const Tensor<double> b = testing::random_matrix<double>(20, 3, 2);
  const Procrustes<double> best = procrustes(a, b);
  for (const double angle : {-1e-3, 1e-3, 0.3}) {
    Tensor<double> turn = testing::identity<double>(3);
    turn(0, 0) = turn(1, 1) = std::cos(angle);
    turn(0, 1) = -std::sin(angle);
    turn(1, 0) = std::sin(angle);
    EXPECT_GT(difference(product(a, product(best.rotation, turn)), b), best.residual_norm);
  }
}

TEST(Procrustes, WithoutReflectionTheDeterminantIsOne) {
  const Tensor<double> a = testing::random_matrix<double>(12, 3);
  Tensor<double> mirrored = a;
  for (Index row = 0; row < 12; ++row) mirrored(row, 1) = -a(row, 1);
  EXPECT_NEAR(determinant(procrustes(a, mirrored).rotation), -1, 1e-14);
  const Procrustes<double> proper = procrustes(a, mirrored, {.reflection = false});
  EXPECT_NEAR(determinant(proper.rotation), 1, 1e-14);
  EXPECT_LE(departure(proper.rotation), 1e-14);
  EXPECT_GT(proper.residual_norm, 1);
  EXPECT_NEAR(difference(product(a, proper.rotation), mirrored), proper.residual_norm, 1e-13);
}

TEST(Procrustes, ScalesAreHarmless) {
  for (const double scale : {1e-200, 1e200}) {
    const Tensor<double> a = Tensor<double>::matrix({{scale, 0}, {0, 2 * scale}});
    const Tensor<double> b = Tensor<double>::matrix({{0, 3 * scale}, {-6 * scale, 0}});
    const Procrustes<double> found = procrustes(a, b, {.scaling = true});
    EXPECT_TRUE(testing::is_near(found.rotation, Tensor<double>::matrix({{0, 1}, {-1, 0}}),
                                 {.absolute = 1e-15}));
    EXPECT_NEAR(found.scale, 3, 1e-14);
  }
}

TEST(Procrustes, OfAZeroMatrixHasTheScaleZero) {
  const Procrustes<float> found =
      procrustes(Tensor<float>(Shape{2, 2}), Tensor<float>({2, 2}, 1.0F), {.scaling = true});
  EXPECT_EQ(found.scale, 0);
  EXPECT_LE(departure(found.rotation), 1e-6);
  EXPECT_FLOAT_EQ(found.residual_norm, 2);
}

TEST(Procrustes, NamesTravel) {
  const Tensor<float> a = testing::random_matrix<float>(4, 3).named({"word", "english"});
  const Tensor<float> b = testing::random_matrix<float>(4, 3).named({"word", "german"});
  EXPECT_EQ(to_string(procrustes(a, b).rotation.shape()), "3x3 (english, german)");
}

TEST(Procrustes, ShapesThatDifferAreRefused) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              procrustes(Tensor<float>(Shape{2, 3}), Tensor<float>(Shape{3, 2}));
            }),
            "procrustes: a is 2x3 and b is 3x2, but both must have the same shape\n"
            "  hint: with b transposed it fits");
  EXPECT_EQ(testing::thrown_by<ShapeError>([] {
              procrustes(Tensor<float>(Shape{2, 3}), Tensor<float>(Shape{2, 2}));
            }),
            "procrustes: a is 2x3 and b is 2x2, but both must have the same shape");
}

}  // namespace
}  // namespace eckart
