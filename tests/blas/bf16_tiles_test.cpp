#include "eckart/blas/bf16_tiles.h"

#include "eckart/core/parallel.h"
#include "eckart/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <vector>

#include "tests/random_tensor.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::random_matrix;

struct Found {
  Tensor<float> y, z;
};

Found sweep(const Tensor<float>& a, const Tensor<float>& x, bool copies = false) {
  const Index m = a.size(0), n = a.size(1), b = x.size(0);
  const float unwritten = std::numeric_limits<float>::quiet_NaN();
  Found found{Tensor<float>({b, m}, unwritten), Tensor<float>({b, n}, unwritten)};
  const auto rows = [&](Index first, Index count, float* scratch) -> blas::FloatRows {
    if (!copies) return {a.data() + first * n, n};
    std::copy_n(a.data() + first * n, count * n, scratch);
    return {scratch, n};
  };
  blas::TileMatrix(m, n, rows).apply_normal(b, x.data(), found.y.data(), found.z.data());
  return found;
}

// Of left right, the largest error of `product` beside the norms of its row and column.
double largest_error(TensorView<const float> left, TensorView<const float> right,
                     TensorView<const float> product) {
  double largest = 0;
  for (Index i = 0; i < product.size(0); ++i) {
    for (Index j = 0; j < product.size(1); ++j) {
      double sum = 0, left_square = 0, right_square = 0;
      for (Index k = 0; k < left.size(1); ++k) {
        const double x = static_cast<double>(left(i, k)), y = static_cast<double>(right(k, j));
        sum += x * y;
        left_square += x * x;
        right_square += y * y;
      }
      const double error = std::abs(static_cast<double>(product(i, j)) - sum);
      if (!(error <= 0)) largest = std::max(largest, error / std::sqrt(left_square * right_square));
      if (std::isnan(error)) return error;
    }
  }
  return largest;
}

class Bf16Tiles : public ::testing::TestWithParam<std::tuple<Index, Index, Index>> {
 protected:
  void SetUp() override {
    if (!blas::has_bf16_tiles()) GTEST_SKIP() << "this processor has no tiles for bf16";
  }
};

// Each factor of a term is rounded by at most 2^-8 of itself, so that by Cauchy and Schwarz the sum
// is off by at most 2 (2^-8) of the norms' product; float sums add some n eps / 2 at most.
TEST_P(Bf16Tiles, ProductsThereAndBackAreGoodToTheRoundingOfTheirFactors) {
  const auto [m, n, b] = GetParam();
  const Tensor<float> a = random_matrix<float>(m, n, 3);
  const Tensor<float> x = random_matrix<float>(b, n, 4);
  const Found found = sweep(a, x);
  const double bound = std::ldexp(2.02, -8);
  EXPECT_LE(largest_error(x, a.view().transpose(), found.y), bound);
  EXPECT_LE(largest_error(found.y, a, found.z), bound);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bf16Tiles,
                         ::testing::Values(std::tuple<Index, Index, Index>{1, 1, 1},
                                           std::tuple<Index, Index, Index>{1, 70, 3},
                                           std::tuple<Index, Index, Index>{33, 1, 16},
                                           std::tuple<Index, Index, Index>{31, 32, 17},
                                           std::tuple<Index, Index, Index>{64, 48, 80},
                                           std::tuple<Index, Index, Index>{300, 95, 33},
                                           std::tuple<Index, Index, Index>{2100, 64, 48}));

class Bf16TilesOnce : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!blas::has_bf16_tiles()) GTEST_SKIP() << "this processor has no tiles for bf16";
  }
};

TEST_F(Bf16TilesOnce, SmallIntegersAreExact) {
  Tensor<float> a({40, 50}), x({2, 50});
  for (Index i = 0; i < a.count(); ++i) a.data()[i] = static_cast<float>(i % 7 - 3);
  for (Index i = 0; i < x.count(); ++i) x.data()[i] = static_cast<float>(i % 5 - 2);
  const Found found = sweep(a, x);
  for (Index vector = 0; vector < 2; ++vector) {
    for (Index row = 0; row < 40; ++row) {
      float sum = 0;
      for (Index column = 0; column < 50; ++column) sum += a(row, column) * x(vector, column);
      EXPECT_EQ(found.y(vector, row), sum) << vector << ", " << row;
    }
  }
}

TEST_F(Bf16TilesOnce, RowsThatAreCopiedGiveTheSameAndSoDoesAnyNumberOfThreads) {
  const Tensor<float> a = random_matrix<float>(1000, 200, 5);
  const Tensor<float> x = random_matrix<float>(20, 200, 6);
  const Found found = sweep(a, x);
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    const Found again = sweep(a, x, true);
    set_thread_count(0);
    EXPECT_TRUE(std::equal(found.y.data(), found.y.data() + found.y.count(), again.y.data()));
    EXPECT_TRUE(std::equal(found.z.data(), found.z.data() + found.z.count(), again.z.data()));
  }
}

TEST_F(Bf16TilesOnce, RowsTimesRowsAreGoodToWhatRoundingChangedThem) {
  for (const auto& [m, n, d] : {std::tuple<Index, Index, Index>{1, 1, 1},
                                {16, 16, 32},
                                {17, 33, 70},
                                {40, 5, 31},
                                {3, 100, 768}}) {
    const Tensor<float> a = random_matrix<float>(m, d, 7);
    const Tensor<float> b = random_matrix<float>(n, d, 8);
    blas::TileRows left(m, d, blas::TileRows::Side::left);
    blas::TileRows right(n, d, blas::TileRows::Side::right);
    left.pack(a.data(), m, d);
    right.pack(b.data(), n, d);
    Tensor<float> c({left.padded_rows(), right.padded_rows()});
    blas::multiply_rows(left, right, c.data(), right.padded_rows());
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) {
        double sum = 0, a_square = 0, b_square = 0;
        for (Index k = 0; k < d; ++k) {
          const double x = static_cast<double>(a(i, k)), y = static_cast<double>(b(j, k));
          sum += x * y;
          a_square += x * x;
          b_square += y * y;
        }
        const double a_change =
            std::sqrt(static_cast<double>(left.rounding()[static_cast<std::size_t>(i)]));
        const double b_change =
            std::sqrt(static_cast<double>(right.rounding()[static_cast<std::size_t>(j)]));
        EXPECT_LE(a_change, std::ldexp(std::sqrt(a_square), -8));
        // Cauchy and Schwarz; the float sums of d terms add their own rounding.
        const double bound = a_change * std::sqrt(b_square) +
                             (std::sqrt(a_square) + a_change) * b_change +
                             1e-6 * std::sqrt(a_square * b_square);
        EXPECT_NEAR(static_cast<double>(c(i, j)), sum, bound) << i << ", " << j << " of " << d;
      }
    }
  }
}

}  // namespace
}  // namespace eckart
