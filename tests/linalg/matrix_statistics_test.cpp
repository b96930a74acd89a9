#include "eckart/linalg/matrix_statistics.h"

#include "eckart/core/parallel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spectrum_matrices.h"
#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::normal_matrix;

TEST(MatrixStatistics, OfASmallMatrixAreCheckedByHand) {
  const auto a = Tensor<float>::matrix({{3, 0, 4}, {0, -12, 0}});
  const MatrixStatistics s = matrix_statistics(a);
  EXPECT_DOUBLE_EQ(s.frobenius_norm, 13);
  EXPECT_EQ(s.largest, 12);
  EXPECT_EQ(s.largest_at, (MatrixPosition{1, 1}));
  EXPECT_TRUE(has_elements(s.row_norms.view(), {5, 12}));
  EXPECT_TRUE(has_elements(s.column_norms.view(), {3, 12, 4}));
  EXPECT_TRUE(s.is_finite());
}

TEST(MatrixStatistics, NormsAreThoseOfPlainSumsInEveryShape) {
  for (const Shape& shape :
       {Shape{1, 1}, Shape{1, 37}, Shape{37, 1}, Shape{33, 65}, Shape{300, 7}}) {
    const auto a = normal_matrix<double>(shape.size(0), shape.size(1), 5);
    const MatrixStatistics s = matrix_statistics(a);
    double sum = 0;
    for (Index row = 0; row < shape.size(0); ++row) {
      double in_row = 0;
      for (Index column = 0; column < shape.size(1); ++column)
        in_row += a(row, column) * a(row, column);
      EXPECT_NEAR(s.row_norms(row), std::sqrt(in_row), 1e-13 * std::sqrt(in_row));
      sum += in_row;
    }
    EXPECT_NEAR(s.frobenius_norm, std::sqrt(sum), 1e-13 * std::sqrt(sum)) << to_string(shape);
    double by_column = 0;
    for (Index column = 0; column < shape.size(1); ++column)
      by_column += s.column_norms(column) * s.column_norms(column);
    EXPECT_NEAR(by_column, sum, 1e-12 * sum);
  }
}

TEST(MatrixStatistics, OfATransposedOrSlicedViewAreThoseOfItsCopy) {
  const auto a = normal_matrix<float>(40, 30, 1);
  const TensorView<const float> all = a.view();
  for (const TensorView<const float>& view :
       {all.transpose(), all.slice(1, {.begin = 3, .end = 20, .step = 2}),
        all.slice(0, {.begin = 5}).transpose()}) {
    const MatrixStatistics s = matrix_statistics(view),
                           copied = matrix_statistics(Tensor<float>(view));
    EXPECT_EQ(s.shape, copied.shape);
    EXPECT_EQ(s.largest_at, copied.largest_at);
    EXPECT_TRUE(is_near(s.row_norms, copied.row_norms, {.relative = 1e-14}));
    EXPECT_TRUE(is_near(s.column_norms, copied.column_norms, {.relative = 1e-14}));
  }
}

TEST(MatrixStatistics, NormsNeitherOverflowNorVanish) {
  for (const double scale : {1e-320, 1e-300, 1e-160, 1e160, 1e300}) {
    const auto a = Tensor<double>::matrix({{3 * scale, 0}, {0, 4 * scale}});
    const MatrixStatistics s = matrix_statistics(a);
    // 1e-320 is a subnormal with about 11 bits.
    const double relative = scale < 1e-310 ? 1e-3 : 1e-15;
    EXPECT_NEAR(s.frobenius_norm / scale, 5, 5 * relative) << scale;
    EXPECT_NEAR(s.column_norms(1) / scale, 4, 4 * relative) << scale;
    EXPECT_NEAR(s.row_norms(0) / scale, 3, 3 * relative) << scale;
  }
  const Tensor<float> large({2, 2}, std::numeric_limits<float>::max());
  EXPECT_NEAR(matrix_statistics(large).frobenius_norm,
              2.0 * static_cast<double>(std::numeric_limits<float>::max()), 1e24);
}

TEST(MatrixStatistics, NanAndInfinityAreCountedWithTheirFirstPosition) {
  auto a = normal_matrix<float>(50, 20, 2);
  a(7, 3) = std::numeric_limits<float>::quiet_NaN();
  a(7, 11) = -std::numeric_limits<float>::quiet_NaN();
  a(31, 0) = -std::numeric_limits<float>::infinity();
  const MatrixStatistics s = matrix_statistics(a);
  EXPECT_EQ(s.n_nan, 2);
  EXPECT_EQ(s.n_infinite, 1);
  EXPECT_EQ(s.first_nan, (MatrixPosition{7, 3}));
  EXPECT_EQ(s.first_infinite, (MatrixPosition{31, 0}));
  EXPECT_FALSE(s.is_finite());
  EXPECT_TRUE(std::isfinite(s.frobenius_norm));
  const Tensor<float> nothing({2, 3}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(matrix_statistics(nothing).largest_at, std::nullopt);
}

TEST(MatrixStatistics, AChannelThatIsTenTimesAsLargeStandsOut) {
  auto a = normal_matrix<float>(200, 100, 3);
  EXPECT_TRUE(matrix_statistics(a).outlier_columns.empty());
  for (Index row = 0; row < 200; ++row) a(row, 17) *= 10;
  EXPECT_EQ(matrix_statistics(a).outlier_columns, std::vector<Index>{17});
  EXPECT_EQ(matrix_statistics(TensorView<const float>(a.view()).transpose()).outlier_rows,
            std::vector<Index>{17});
  // Norms that are all alike have no outliers, though their spread is that of rounding.
  EXPECT_TRUE(matrix_statistics(Tensor<float>({64, 3}, 0.1F)).outlier_rows.empty());
}

TEST(MatrixStatistics, OfAnEmptyMatrixAreZero) {
  for (const Shape& shape : {Shape{0, 5}, Shape{5, 0}, Shape{0, 0}}) {
    const MatrixStatistics s = matrix_statistics(Tensor<double>(shape));
    EXPECT_EQ(s.frobenius_norm, 0);
    EXPECT_EQ(s.largest_at, std::nullopt);
    EXPECT_EQ(s.row_norms.count(), shape.size(0));
  }
}

TEST(MatrixStatistics, AreTheSameForEveryNumberOfThreads) {
  const auto a = normal_matrix<float>(700, 300, 4);
  set_thread_count(1);
  const MatrixStatistics one = matrix_statistics(a);
  set_thread_count(3);
  const MatrixStatistics three = matrix_statistics(a);
  set_thread_count(0);
  EXPECT_EQ(one.frobenius_norm, three.frobenius_norm);
  EXPECT_TRUE(is_near(one.column_norms, three.column_norms));
}

TEST(MatrixStatistics, ReadInBlocksAreThoseOfTheWhole) {
  const auto a = normal_matrix<float>(900, 130, 6);
  const MatrixStatistics streamed =
      streamed_matrix_statistics<float>(a.shape(), [&](Index first, Index count, float* rows) {
        std::copy_n(a.data() + first * 130, count * 130, rows);
      });
  EXPECT_EQ(streamed.frobenius_norm, matrix_statistics(a).frobenius_norm);
}

TEST(MatrixStatistics, TakeAMatrixOnly) {
  EXPECT_EQ(testing::thrown_by<ShapeError>([] { matrix_statistics(Tensor<float>(Shape{3})); }),
            "matrix_statistics: a is 3, but it must be a matrix\n"
            "  hint: reshaped it fits: as one column it is 3x1, as one row 1x3");
}

}  // namespace
}  // namespace eckart
