#include "eckart/blas/lapack.h"

#include "eckart/core/errors.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/thrown.h"
#include <gtest/gtest.h>

// The wrappers' contract: column-major, leading dimensions, which triangle is read, what `info`
// means. The factorisations themselves are tested where they are used, in tests/linalg.
namespace eckart::blas {
namespace {

template <class T>
class Lapack : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Lapack, Types);

// A few operations on numbers near 1.
template <class T>
double bound() {
  return 32 * static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
void expect_near(const std::vector<T>& found, const std::vector<double>& expected,
                 const char* what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(found[i]), expected[i], bound<T>()) << what << " " << i;
  }
}

// Stands where nothing may be read or written.
template <class T>
constexpr T untouched = T{77};

TYPED_TEST(Lapack, LuTakesColumnsAndALeadingDimension) {
  using T = TypeParam;
  // [[0, 2], [1, 3]] in columns of 3, the last row of which is not the matrix'.
  std::vector<T> a = {0, 1, untouched<T>, 2, 3, untouched<T>};
  std::vector<LapackInt> pivots(2);
  ASSERT_EQ(getrf<T>(2, 2, a.data(), 3, pivots.data()), 0);
  EXPECT_EQ(pivots, (std::vector<LapackInt>{2, 2}));  // from 1: row 1 changed places with row 2
  expect_near(a, {1, 0, 77, 3, 2, 77}, "lu");
  std::vector<T> b = {2, 5, untouched<T>, 4, 10, untouched<T>};  // a (2, 1) and twice that
  getrs<T>(false, 2, 2, a.data(), 3, pivots.data(), b.data(), 3);
  expect_near(b, {2, 1, 77, 4, 2, 77}, "x");
  std::vector<T> c = {1, 7};  // a^T (2, 1)
  getrs<T>(true, 2, 1, a.data(), 3, pivots.data(), c.data(), 2);
  expect_near(c, {2, 1}, "x of the transpose");
  // ||a||_1 = 5, ||a^-1||_1 = ||[[-1.5, 1], [0.5, 0]]||_1 = 2.
  EXPECT_NEAR(static_cast<double>(gecon<T>(2, a.data(), 3, T{5})), 0.1, bound<T>());
}

TYPED_TEST(Lapack, LuNamesThePivotThatIsZero) {
  using T = TypeParam;
  std::vector<T> a = {1, 2, 2, 4};
  std::vector<LapackInt> pivots(2);
  EXPECT_EQ(getrf<T>(2, 2, a.data(), 2, pivots.data()), 2);
}

TYPED_TEST(Lapack, CholeskyReadsAndWritesItsTriangleAlone) {
  using T = TypeParam;
  std::vector<T> lower = {4, 2, untouched<T>, 10};  // [[4, .], [2, 10]]
  ASSERT_EQ(potrf<T>(true, 2, lower.data(), 2), 0);
  expect_near(lower, {2, 1, 77, 3}, "lower");
  std::vector<T> upper = {4, untouched<T>, 2, 10};
  ASSERT_EQ(potrf<T>(false, 2, upper.data(), 2), 0);
  expect_near(upper, {2, 77, 1, 3}, "upper");
  for (const bool is_lower : {true, false}) {
    const std::vector<T>& factor = is_lower ? lower : upper;
    std::vector<T> b = {6, 12};  // [[4, 2], [2, 10]] (1, 1)
    potrs<T>(is_lower, 2, 1, factor.data(), 2, b.data(), 2);
    expect_near(b, {1, 1}, "x");
    // ||a||_1 = 12, ||a^-1||_1 = ||[[10, -2], [-2, 4]]||_1 / 36 = 1/3.
    EXPECT_NEAR(static_cast<double>(pocon<T>(is_lower, 2, factor.data(), 2, T{12})), 0.25,
                bound<T>());
  }
}

TYPED_TEST(Lapack, CholeskyNamesTheMinorThatIsNotPositive) {
  using T = TypeParam;
  std::vector<T> a = {1, 2, 2, 1};
  EXPECT_EQ(potrf<T>(true, 2, a.data(), 2), 2);
  std::vector<T> b = {0, 0, 0, 1};
  EXPECT_EQ(potrf<T>(true, 2, b.data(), 2), 1);
}

TYPED_TEST(Lapack, TriangularSystemsTakeEitherTriangleItsTransposeAndAUnitDiagonal) {
  using T = TypeParam;
  const std::vector<T> t = {2, 1, untouched<T>, 4};  // lower [[2, .], [1, 4]]
  std::vector<T> b = {2, 9};
  ASSERT_EQ(trtrs<T>(true, false, false, 2, 1, t.data(), 2, b.data(), 2), 0);
  expect_near(b, {1, 2}, "lower");
  std::vector<T> transposed = {4, 8};  // [[2, 1], [0, 4]] (1, 2)
  ASSERT_EQ(trtrs<T>(true, true, false, 2, 1, t.data(), 2, transposed.data(), 2), 0);
  expect_near(transposed, {1, 2}, "transposed");
  std::vector<T> unit = {1, 3};  // [[1, 0], [1, 1]] (1, 2)
  ASSERT_EQ(trtrs<T>(true, false, true, 2, 1, t.data(), 2, unit.data(), 2), 0);
  expect_near(unit, {1, 2}, "unit diagonal");
  const std::vector<T> upper = {2, untouched<T>, 1, 4};
  std::vector<T> c = {4, 8};
  ASSERT_EQ(trtrs<T>(false, false, false, 2, 1, upper.data(), 2, c.data(), 2), 0);
  expect_near(c, {1, 2}, "upper");
  const std::vector<T> singular = {2, 1, 0, 0};
  EXPECT_EQ(trtrs<T>(true, false, false, 2, 1, singular.data(), 2, b.data(), 2), 2);
}

TYPED_TEST(Lapack, QrGivesTheColumnsOfQAndProductsWithIt) {
  using T = TypeParam;
  // The columns (3, 4, 0) and (0, 0, 2): Q = [(3, 4, 0) / 5, (0, 0, 1), …] up to signs.
  std::vector<T> a = {3, 4, 0, 0, 0, 2};
  std::vector<T> tau(2);
  geqrf<T>(3, 2, a.data(), 3, tau.data());
  EXPECT_NEAR(std::abs(static_cast<double>(a[0])), 5, bound<T>());
  EXPECT_NEAR(std::abs(static_cast<double>(a[4])), 2, bound<T>());
  const double sign_0 = a[0] > 0 ? 1 : -1;
  const double sign_1 = a[4] > 0 ? 1 : -1;
  std::vector<T> c = {3, 4, 2};  // the sum of both columns
  ormqr<T>(true, 3, 1, 2, a.data(), 3, tau.data(), c.data(), 3);
  expect_near(c, {5 * sign_0, 2 * sign_1, 0}, "Q^T c");
  ormqr<T>(false, 3, 1, 2, a.data(), 3, tau.data(), c.data(), 3);
  expect_near(c, {3, 4, 2}, "Q Q^T c");
  std::vector<T> q = a;
  q.resize(9);
  orgqr<T>(3, 3, 2, q.data(), 3, tau.data());
  expect_near<T>({q.begin(), q.begin() + 6}, {0.6 * sign_0, 0.8 * sign_0, 0, 0, 0, sign_1},
                 "thin Q");
  EXPECT_NEAR(std::abs(static_cast<double>(q[6])), 0.8, bound<T>());  // the third: (4, -3, 0) / 5
  EXPECT_NEAR(std::abs(static_cast<double>(q[7])), 0.6, bound<T>());
}

TYPED_TEST(Lapack, PivotedQrTakesTheLongestColumnFirst) {
  using T = TypeParam;
  std::vector<T> a = {1, 0, 0, 5};
  std::vector<LapackInt> pivots(2, 0);
  std::vector<T> tau(2);
  geqp3<T>(2, 2, a.data(), 2, pivots.data(), tau.data());
  EXPECT_EQ(pivots, (std::vector<LapackInt>{2, 1}));
  EXPECT_NEAR(std::abs(static_cast<double>(a[0])), 5, bound<T>());
}

TYPED_TEST(Lapack, BothSvdsGiveThinFactorsInColumns) {
  using T = TypeParam;
  for (const auto routine : {&gesdd<T>, &gesvd<T>}) {
    // 3 x 2 with the columns (0, 0, 3) and (4, 0, 0): values 4 and 3.
    const std::vector<T> columns = {0, 0, 3, 4, 0, 0};
    std::vector<T> a = columns;
    std::vector<T> s(2), u(6), vt(4);
    ASSERT_EQ(routine(3, 2, a.data(), 3, s.data(), u.data(), 3, vt.data(), 2), 0);
    expect_near(s, {4, 3}, "s");
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t column = 0; column < 2; ++column) {
        double entry = 0;
        for (std::size_t k = 0; k < 2; ++k) {
          entry += static_cast<double>(u[3 * k + row]) * static_cast<double>(s[k]) *
                   static_cast<double>(vt[2 * column + k]);
        }
        EXPECT_NEAR(entry, static_cast<double>(columns[3 * column + row]), bound<T>());
      }
    }
    a = columns;
    std::vector<T> alone(2);
    ASSERT_EQ(routine(3, 2, a.data(), 3, alone.data(), nullptr, 1, nullptr, 1), 0);
    expect_near(alone, {4, 3}, "values alone");
    std::vector<T> wide = {2, 0, 0, 0, 0, 1};  // 2 x 3
    std::vector<T> wide_u(4), wide_vt(6);
    ASSERT_EQ(routine(2, 3, wide.data(), 2, s.data(), wide_u.data(), 2, wide_vt.data(), 2), 0);
    expect_near(s, {2, 1}, "s of a wide matrix");
    EXPECT_NEAR(std::abs(static_cast<double>(wide_vt[0])), 1, bound<T>());
    EXPECT_NEAR(std::abs(static_cast<double>(wide_vt[5])), 1, bound<T>());
  }
}

TYPED_TEST(Lapack, SymmetricEigenvaluesAscendAndReadTheLowerTriangle) {
  using T = TypeParam;
  const std::vector<T> lower = {2, 1, untouched<T>, 2};  // [[2, 1], [1, 2]]: 1 and 3
  std::vector<T> a = lower;
  std::vector<T> values(2);
  ASSERT_EQ(syevd<T>(2, a.data(), 2, values.data()), 0);
  expect_near(values, {1, 3}, "values");
  const double half = std::sqrt(0.5);
  EXPECT_NEAR(static_cast<double>(a[0] * a[1]), -half * half, bound<T>());  // (1, -1): column 0
  EXPECT_NEAR(static_cast<double>(a[2] * a[3]), half * half, bound<T>());
  a = lower;
  std::vector<T> alone(2);
  ASSERT_EQ(syevd_values<T>(2, a.data(), 2, alone.data()), 0);
  expect_near(alone, {1, 3}, "values alone");
  a = lower;
  std::vector<T> largest(1), vector(2);
  ASSERT_EQ(syevr<T>(2, a.data(), 2, 1, 1, largest.data(), vector.data(), 2), 0);
  expect_near(largest, {3}, "number 1, from 0");
  EXPECT_NEAR(static_cast<double>(vector[0] * vector[1]), 0.5, bound<T>());
  a = lower;
  ASSERT_EQ(syevr<T>(2, a.data(), 2, 0, 0, largest.data(), nullptr, 1), 0);
  expect_near(largest, {1}, "the smallest, without a vector");
}

TYPED_TEST(Lapack, GeneralEigenvaluesComeInConjugatePairsOfTwoColumns) {
  using T = TypeParam;
  std::vector<T> a = {0, 1, -1, 0};  // a quarter turn: i and -i
  std::vector<T> real(2), imaginary(2), v(4);
  ASSERT_EQ(geev<T>(2, a.data(), 2, real.data(), imaginary.data(), v.data(), 2), 0);
  expect_near(real, {0, 0}, "real");
  expect_near(imaginary, {1, -1}, "imaginary");
  // a (v_0 + i v_1) = i (v_0 + i v_1): its real part is a v_0 = -v_1.
  expect_near<T>({-v[1], v[0]}, {-static_cast<double>(v[2]), -static_cast<double>(v[3])}, "a v_0");
  a = {2, 0, 1, 3};
  ASSERT_EQ(geev<T>(2, a.data(), 2, real.data(), imaginary.data(), nullptr, 1), 0);
  expect_near(real, {2, 3}, "without vectors");
}

TYPED_TEST(Lapack, EmptyMatricesAreTaken) {
  using T = TypeParam;
  T none{};
  LapackInt pivot = 0;
  EXPECT_EQ(getrf<T>(0, 0, &none, 0, &pivot), 0);
  EXPECT_EQ(potrf<T>(true, 0, &none, 0), 0);
  EXPECT_EQ(gesdd<T>(0, 3, &none, 0, &none, nullptr, 1, nullptr, 1), 0);
  EXPECT_EQ(syevd<T>(0, &none, 0, &none), 0);
  geqrf<T>(3, 0, &none, 3, &none);
}

TYPED_TEST(Lapack, SizesBeyondItsIntegersAreRefused) {
  using T = TypeParam;
  constexpr Index size = Index{1} << 31;
  const char* const text = "LAPACK: a size is 2147483648, but it takes at most 2147483647";
  T none{};
  LapackInt pivot = 0;
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { getrf<T>(size, 1, &none, size, &pivot); }),
            text);
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { geqrf<T>(1, size, &none, 1, &none); }), text);
  EXPECT_EQ(testing::thrown_by<ArgumentError>([&] { syevd<T>(size, &none, size, &none); }), text);
}

TEST(LapackTridiagonal, StepsMakeTheEigenvectorsOfTheMatrix) {
  // [[2, 1, 0], [1, 2, 1], [0, 1, 2]] has 2 - sqrt 2, 2, 2 + sqrt 2.
  const std::array<double, 9> matrix = {2, 1, 0, 1, 2, 1, 0, 1, 2};
  std::array<double, 9> a = matrix;
  const Tridiagonal t = sytrd(3, a.data(), 3);
  EXPECT_EQ(t.diagonal.size(), 3U);
  std::array<double, 3> values{};
  ASSERT_EQ(sterf(t, values.data()), 0);
  const std::array<double, 3> expected = {2 - std::sqrt(2.0), 2, 2 + std::sqrt(2.0)};
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(values[i], expected[i], bound<double>());
  std::array<double, 6> v{};
  ASSERT_EQ(stemr(t, 1, 2, v.data(), 3), 0);  // the two largest
  ormtr(t, a.data(), 3, 2, v.data(), 3);
  for (std::size_t k = 0; k < 2; ++k) {
    for (std::size_t row = 0; row < 3; ++row) {
      double product = 0;
      for (std::size_t j = 0; j < 3; ++j) product += matrix[3 * j + row] * v[3 * k + j];
      EXPECT_NEAR(product, expected[k + 1] * v[3 * k + row], bound<double>()) << k << ' ' << row;
    }
  }
}

}  // namespace
}  // namespace eckart::blas
