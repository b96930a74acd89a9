#include "eckart/linalg/low_rank.h"

#include "eckart/blas/gemm.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/singular_values.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::random_matrix;

// Orthogonal columns with known directions: those of the cosine transform.
double cosine(Index n, Index i, Index j) {
  const double angle =
      M_PI / static_cast<double>(n) * (static_cast<double>(i) + 0.5) * static_cast<double>(j);
  return std::cos(angle) * std::sqrt((j == 0 ? 1.0 : 2.0) / static_cast<double>(n));
}

// An m x n matrix with these singular values, whose vectors are cosines.
template <class T>
Tensor<T> with_values(Index m, Index n, const std::vector<double>& values) {
  const auto count = static_cast<Index>(values.size());
  Tensor<double> left({m, count}), right({count, n}), product({m, n});
  for (Index k = 0; k < count; ++k) {
    for (Index i = 0; i < m; ++i) {
      left(i, k) = values[static_cast<std::size_t>(k)] * cosine(m, i, k);
    }
    for (Index j = 0; j < n; ++j) right(k, j) = cosine(n, j, k);
  }
  blas::gemm<double>(1, left, right, 0, product.view());
  Tensor<T> result({m, n});
  for (Index i = 0; i < product.count(); ++i) {
    result.data()[i] = static_cast<T>(product.data()[i]);
  }
  return result;
}

std::vector<double> values_by(Index count, const std::function<double(double)>& value) {
  std::vector<double> values;
  for (Index i = 0; i < count; ++i) values.push_back(value(static_cast<double>(i)));
  return values;
}

// ||a - u s vt||_F entry by entry in double.
template <class T>
double error_of(const Tensor<T>& a, const LowRank<T>& approximation) {
  const auto in_double = [](TensorView<const T> from) {
    Tensor<double> to({from.size(0), from.size(1)});
    for_each_element([](double& x, const T& y) { x = static_cast<double>(y); }, to.view(), from);
    return to;
  };
  Tensor<double> rest = in_double(a), us = in_double(approximation.u);
  for (Index i = 0; i < us.size(0); ++i) {
    for (Index k = 0; k < us.size(1); ++k) us(i, k) *= static_cast<double>(approximation.s(k));
  }
  blas::gemm<double>(-1, us, in_double(approximation.vt), 1, rest.view());
  double sum = 0;
  for (Index i = 0; i < rest.count(); ++i) sum += rest.data()[i] * rest.data()[i];
  return std::sqrt(sum);
}

template <class T>
void expect_orthonormal_rows(TensorView<const T> rows) {
  // Products of unit vectors in T are off by some n / 10 roundings.
  const double bound = 4 * static_cast<double>(std::numeric_limits<T>::epsilon()) *
                       std::sqrt(static_cast<double>(rows.size(1)));
  for (Index i = 0; i < rows.size(0); ++i) {
    for (Index j = 0; j <= i; ++j) {
      double dot = 0;
      for (Index k = 0; k < rows.size(1); ++k) {
        dot += static_cast<double>(rows(i, k)) * static_cast<double>(rows(j, k));
      }
      ASSERT_NEAR(dot, i == j ? 1 : 0, bound) << i << ", " << j;
    }
  }
}

template <class T>
void expect_sound(const Tensor<T>& a, const LowRank<T>& approximation) {
  EXPECT_EQ(approximation.u.shape().sizes(), (std::vector<Index>{a.size(0), approximation.rank}));
  EXPECT_EQ(approximation.vt.shape().sizes(), (std::vector<Index>{approximation.rank, a.size(1)}));
  expect_orthonormal_rows<T>(approximation.u.view().transpose());
  expect_orthonormal_rows<T>(approximation.vt);
  // The certificate is good to 1%, or to the rounding of the product it is about.
  const double norm = approximation.frobenius_norm;
  const double rounding = 8 * static_cast<double>(std::numeric_limits<T>::epsilon()) * norm;
  const double error = error_of(a, approximation);
  EXPECT_NEAR(approximation.frobenius_error, error, 0.01 * error + rounding);
  if (norm > 0) {
    EXPECT_DOUBLE_EQ(approximation.relative_error * norm, approximation.frobenius_error);
  }
  for (Index i = 1; i < approximation.rank; ++i) {
    EXPECT_LE(approximation.s(i), approximation.s(i - 1));
  }
}

template <class T>
double tail_norm(const std::vector<double>& values, Index rank) {
  double sum = 0;
  for (std::size_t i = static_cast<std::size_t>(rank); i < values.size(); ++i) {
    sum += values[i] * values[i];
  }
  return std::sqrt(sum);
}

template <class T>
class LowRankOf : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LowRankOf, Floats);

TYPED_TEST(LowRankOf, TheWorkedExampleIsItsBestApproximation) {
  using T = TypeParam;
  for (const auto& example : testing::worked_examples("low_rank")) {
    const Tensor<double> a = testing::tensor_of(example.inputs.at("a"));
    Tensor<T> in({a.size(0), a.size(1)});
    for (Index i = 0; i < a.count(); ++i) in.data()[i] = static_cast<T>(a.data()[i]);
    const LowRank<T> found =
        low_rank(in, {.rank = example.inputs.at("rank").template get<Index>()});
    const Tensor<double> expected = testing::tensor_of(example.expect.at("approximation"));
    const auto [b, factor] = factors(found);
    const double bound =
        std::max(example.tolerance, 8 * static_cast<double>(std::numeric_limits<T>::epsilon()));
    for (Index i = 0; i < expected.size(0); ++i) {
      for (Index j = 0; j < expected.size(1); ++j) {
        double sum = 0;
        for (Index k = 0; k < found.rank; ++k) {
          sum += static_cast<double>(b(i, k)) * static_cast<double>(factor(k, j));
        }
        EXPECT_NEAR(sum, expected(i, j), bound) << example.id;
      }
    }
    EXPECT_NEAR(found.frobenius_error, example.expect.at("frobenius_error").template get<double>(),
                bound);
  }
}

// Eckart and Young: no error is below that of the dropped values; ours is within the tolerance.
TYPED_TEST(LowRankOf, IsNearlyOptimalForManySpectra) {
  using T = TypeParam;
  const struct {
    const char* name;
    std::vector<double> values;
  } spectra[] = {
      {"power law", values_by(300, [](double i) { return 1 / std::sqrt(i + 1); })},
      {"exponential", values_by(300, [](double i) { return std::pow(0.8, i); })},
      {"flat", values_by(300, [](double) { return 1.0; })},
      {"spikes on a bulk", values_by(300, [](double i) { return i < 5 ? 20 / (i + 1) : 1.0; })},
      {"repeated", values_by(300, [](double i) { return std::pow(2.0, -std::floor(i / 20)); })},
      {"of rank 7", values_by(7, [](double i) { return 7 - i; })},
  };
  int n_iterated = 0;
  for (const auto& [name, values] : spectra) {
    for (const auto& [m, n] : {std::array<Index, 2>{300, 300}, {410, 300}, {300, 333}}) {
      const Tensor<T> a = with_values<T>(m, n, values);
      for (const Index rank : {1, 5, 16}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(m) + "x" + std::to_string(n) +
                     " rank " + std::to_string(rank));
        const LowRank<T> found = low_rank(a, {.rank = rank, .seed = 3});
        if (found.method == "block Krylov") ++n_iterated;
        EXPECT_EQ(found.rank, std::min<Index>(rank, static_cast<Index>(values.size())));
        expect_sound(a, found);
        const double best = tail_norm<T>(values, found.rank);
        const double rounding = 1e3 * static_cast<double>(std::numeric_limits<T>::epsilon());
        EXPECT_LE(found.frobenius_error, best * (1 + 1e-3) + rounding * found.frobenius_norm);
        EXPECT_GE(found.frobenius_error, best * (1 - 0.01) - rounding * found.frobenius_norm);
      }
    }
  }
  EXPECT_GT(n_iterated, 40);  // of 54
}

// Where the machine has bf16 tiles, floats take them for the larger tolerances.
TYPED_TEST(LowRankOf, TheToleranceBoundsTheExcessOnFlatSpectra) {
  using T = TypeParam;
  const Tensor<T> a = random_matrix<T>(700, 500, 11);
  const SingularValues values = singular_values(a);
  for (const Index rank : {4, 16, 40}) {
    double rest = 0;
    for (Index i = 500; i-- > rank;) rest += values.values(i) * values.values(i);
    for (const double tolerance : {1e-2, 1e-3, 1e-4}) {
      const LowRank<T> found = low_rank(a, {.rank = rank, .tolerance = tolerance});
      expect_sound(a, found);
      // What later steps would bring is estimated from the last ones, here to a factor of three.
      EXPECT_LE(found.frobenius_error, std::sqrt(rest) * (1 + 3 * tolerance)) << rank;
    }
  }
}

TYPED_TEST(LowRankOf, FindsTheSmallestRankForAnErrorOrAShareOfTheEnergy) {
  using T = TypeParam;
  const std::vector<double> values = values_by(150, [](double i) { return std::pow(0.9, i); });
  const Tensor<T> a = with_values<T>(150, 170, values);
  const double norm = tail_norm<T>(values, 0);
  for (const double error : {0.5, 0.1, 0.02}) {
    Index rank = 0;
    while (tail_norm<T>(values, rank) > error * norm) ++rank;
    const LowRank<T> found = low_rank(a, {.relative_error = error});
    EXPECT_EQ(found.rank, rank);
    EXPECT_LE(found.relative_error, error * (1 + 1e-3));
    const LowRank<T> by_energy = low_rank(a, {.energy = 1 - error * error});
    EXPECT_EQ(by_energy.rank, rank);
    expect_sound(a, by_energy);
  }
}

TYPED_TEST(LowRankOf, TakesTheExactMethodForLargeRanksAndSmallMatrices) {
  using T = TypeParam;
  const Tensor<T> small = random_matrix<T>(20, 30, 1);
  const LowRank<T> whole = low_rank(small, {.rank = 20});
  EXPECT_EQ(whole.method, "svd");
  expect_sound(small, whole);
  EXPECT_LT(whole.relative_error, 20 * static_cast<double>(std::numeric_limits<T>::epsilon()));
  const Tensor<T> large = random_matrix<T>(300, 280, 2);
  const LowRank<T> found = low_rank(large, {.rank = 100});
  EXPECT_EQ(found.method, (std::is_same_v<T, float> ? "Gram matrix in double" : "svd"));
  expect_sound(large, found);
  const SingularValues values = singular_values(large);
  double rest = 0;
  for (Index i = 100; i < 280; ++i) rest += values.values(i) * values.values(i);
  EXPECT_NEAR(found.frobenius_error, std::sqrt(rest), 1e-4 * std::sqrt(rest));
}

TYPED_TEST(LowRankOf, EveryShapeThatIsSmallerThanABlock) {
  using T = TypeParam;
  for (const auto& [m, n] : {std::array<Index, 2>{1, 1}, {1, 7}, {7, 1}, {2, 3}, {5, 5}}) {
    const Tensor<T> a = random_matrix<T>(m, n, 4);
    for (Index rank = 1; rank <= std::min(m, n); ++rank) {
      const LowRank<T> found = low_rank(a, {.rank = rank});
      EXPECT_EQ(found.rank, rank);
      expect_sound(a, found);
    }
  }
}

TYPED_TEST(LowRankOf, AZeroMatrixHasRankNone) {
  using T = TypeParam;
  const LowRank<T> found = low_rank(Tensor<T>({200, 150}), {.rank = 3});
  EXPECT_EQ(found.rank, 0);
  EXPECT_EQ(found.frobenius_error, 0);
  EXPECT_EQ(found.relative_error, 0);
  EXPECT_EQ(found.u.shape(), (Shape{200, 0}));
  EXPECT_EQ(found.vt.shape(), (Shape{0, 150}));
}

TYPED_TEST(LowRankOf, ScalesFromTinyToHugeGiveTheSameAnswer) {
  using T = TypeParam;
  const Tensor<T> a =
      with_values<T>(150, 140, values_by(140, [](double i) { return 1 / (i + 1); }));
  const LowRank<T> reference = low_rank(a, {.rank = 8});
  for (const double scale : {1e-30, 1e30}) {
    Tensor<T> scaled(a);
    for (Index i = 0; i < a.count(); ++i) scaled.data()[i] *= static_cast<T>(scale);
    const LowRank<T> found = low_rank(scaled, {.rank = 8});
    ASSERT_EQ(found.rank, 8);
    EXPECT_NEAR(found.relative_error, reference.relative_error, 1e-5);
    for (Index i = 0; i < 8; ++i) {
      EXPECT_NEAR(static_cast<double>(found.s(i)) / scale, static_cast<double>(reference.s(i)),
                  1e-5);
    }
  }
}

TYPED_TEST(LowRankOf, DoesNotDependOnTheNumberOfThreadsButOnTheSeed) {
  using T = TypeParam;
  const Tensor<T> a = random_matrix<T>(400, 300, 5);
  set_thread_count(1);
  const LowRank<T> one = low_rank(a, {.rank = 10, .seed = 1});
  set_thread_count(3);
  const LowRank<T> many = low_rank(a, {.rank = 10, .seed = 1});
  set_thread_count(0);
  const LowRank<T> other = low_rank(a, {.rank = 10, .seed = 2});
  EXPECT_TRUE(testing::is_near(many.u, one.u));
  EXPECT_TRUE(testing::is_near(many.s, one.s));
  EXPECT_TRUE(testing::is_near(many.vt, one.vt));
  EXPECT_FALSE(testing::is_near(other.u, one.u));
}

TYPED_TEST(LowRankOf, ADifferenceKeepsTheDigitsThatItsProductsWouldLose) {
  using T = TypeParam;
  const Tensor<T> base = random_matrix<T>(200, 180, 6);
  const Tensor<T> change = with_values<T>(200, 180, {3e-3, 2e-3, 1e-3});
  Tensor<T> tuned(base);
  for (Index i = 0; i < base.count(); ++i) tuned.data()[i] += change.data()[i];
  const DifferenceOperator<T> difference(tuned, base);
  const LowRank<T> found = low_rank(difference, {.rank = 3});
  EXPECT_EQ(found.method, "block Krylov");
  // Rounding of the sums tuned = base + change, of size eps / 4 each, is all that is lost.
  const double rounding = static_cast<double>(std::numeric_limits<T>::epsilon()) * 200;
  for (Index i = 0; i < 3; ++i) {
    EXPECT_NEAR(static_cast<double>(found.s(i)), 1e-3 * static_cast<double>(3 - i), rounding);
  }
  expect_sound(difference.dense(), found);
}

TYPED_TEST(LowRankOf, AProductOfFactorsIsNotFormed) {
  using T = TypeParam;
  const Tensor<T> left = random_matrix<T>(300, 6, 7);
  const Tensor<T> right = random_matrix<T>(6, 200, 8);
  const ProductOperator<T> product(left, right);
  const Tensor<T> formed = product.dense();
  const LowRank<T> whole = low_rank(product, {.rank = 20});
  EXPECT_EQ(whole.rank, 6);
  expect_sound(formed, whole);
  const LowRank<T> part = low_rank(product, {.rank = 2});
  const LowRank<T> of_formed = low_rank(formed, {.rank = 2, .exact = true});
  EXPECT_NEAR(part.frobenius_norm, of_formed.frobenius_norm, 1e-5 * of_formed.frobenius_norm);
  EXPECT_NEAR(part.relative_error, of_formed.relative_error, 1e-4);
}

TYPED_TEST(LowRankOf, ATransposedOrSlicedViewIsThatMatrix) {
  using T = TypeParam;
  const Tensor<T> a =
      with_values<T>(320, 150, values_by(150, [](double i) { return 1 / (i + 1); }));
  const TensorView<const T> every_other = a.view().slice(0, {.step = 2});
  const Tensor<T> copy(every_other);
  const LowRank<T> of_view = low_rank(every_other, {.rank = 4});
  const LowRank<T> of_copy = low_rank(copy, {.rank = 4});
  EXPECT_TRUE(testing::is_near(of_view.s, of_copy.s, {.relative = 1e-5}));
  const LowRank<T> of_transpose = low_rank(every_other.transpose(), {.rank = 4});
  EXPECT_TRUE(testing::is_near(of_transpose.s, of_copy.s, {.relative = 1e-5}));
  EXPECT_EQ(of_transpose.u.size(0), 150);
}

TEST(LowRank, CarriesTheNamesOfTheAxes) {
  const Tensor<float> a = random_matrix<float>(140, 130, 9).named({"d_out", "d_in"});
  const LowRank<float> found = low_rank(a, {.rank = 2});
  EXPECT_EQ(to_string(found.u.shape()), "140x2 (d_out, rank)");
  EXPECT_EQ(to_string(found.vt.shape()), "2x130 (rank, d_in)");
  EXPECT_EQ(to_string(factors(found).b.shape()), "140x2 (d_out, rank)");
}

template <class Error>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(LowRank, RefusesWhatItCannotDo) {
  const Tensor<float> a({4, 6}, 1.0F);
  const auto message = [&](const LowRankOptions& options) {
    return message_of<ArgumentError>([&] { low_rank(a, options); });
  };
  EXPECT_EQ(message({}),
            "low_rank: nothing says how much to keep, but it takes one of rank, energy and "
            "relative_error");
  EXPECT_EQ(message({.rank = 2, .energy = 0.5}),
            "low_rank: rank 2 and energy 0.5 are given, but it takes one of rank, energy and "
            "relative_error");
  EXPECT_EQ(message({.rank = 5}), "low_rank: a is 4x6 and rank is 5, but it must be from 1 to 4");
  EXPECT_EQ(message({.rank = -1}), "low_rank: a is 4x6 and rank is -1, but it must be from 1 to 4");
  EXPECT_EQ(message({.energy = 1}), "low_rank: energy is 1, but it must be above 0 and below 1");
  EXPECT_EQ(message({.relative_error = -0.25}),
            "low_rank: relative_error is -0.25, but it must be above 0 and below 1");
  EXPECT_EQ(message({.rank = 1, .tolerance = 0}),
            "low_rank: tolerance is 0, but it must be above 0 and below 1");
  Tensor<float> with_nan(a);
  with_nan(1, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message_of<ArgumentError>([&] { low_rank(with_nan, {.rank = 1}); }),
            "low_rank: a has a NaN at (1, 2), but every element must be finite");
  EXPECT_EQ(message_of<ShapeError>([&] { low_rank(Tensor<float>({3}), {.rank = 1}); }),
            "low_rank: a is 3, but it must be a matrix\n"
            "  hint: reshaped it fits: as one column it is 3x1, as one row 1x3");
  EXPECT_EQ(message_of<ShapeError>([&] {
              DifferenceOperator<float>(a, Tensor<float>({6, 4}));
            }),
            "low_rank: a is 4x6 and b is 6x4, but the matrices of a difference have one shape");
  EXPECT_EQ(message_of<ShapeError>([&] { ProductOperator<float>(a, a); }),
            "low_rank: left is 4x6 and right is 4x6, but left's 6 columns must equal right's 4 "
            "rows");
}

}  // namespace
}  // namespace eckart
