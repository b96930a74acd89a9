#include "eckart/linalg/top_k.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::thrown_by;

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan = std::numeric_limits<T>::quiet_NaN();

template <class T>
Tensor<T> random_rows(Index n, Index d, std::uint64_t seed) {
  Tensor<T> rows = Tensor<T>::uninitialized({n, d});
  RandomStream(seed).fill_normal(std::span<T>(rows.data(), static_cast<std::size_t>(n * d)));
  return rows;
}

template <class T>
Tensor<T> normalized(Tensor<T> rows) {
  const Index d = rows.size(1);
  for (Index i = 0; i < rows.size(0); ++i) {
    double square = 0;
    for (Index j = 0; j < d; ++j) {
      square += static_cast<double>(rows(i, j)) * static_cast<double>(rows(i, j));
    }
    for (Index j = 0; j < d; ++j) {
      rows(i, j) = static_cast<T>(static_cast<double>(rows(i, j)) / std::sqrt(square));
    }
  }
  return rows;
}

// All scores in long double, sorted as the documentation says.
template <class T>
TopK<T> reference(const Tensor<T>& queries, const Tensor<T>& items, Index k, Metric metric) {
  TopK<T> result{Tensor<Index>({queries.size(0), k}), Tensor<T>({queries.size(0), k})};
  for (Index q = 0; q < queries.size(0); ++q) {
    struct Scored {
      long double key;
      Index item;
    };
    std::vector<Scored> scored;
    for (Index i = 0; i < items.size(0); ++i) {
      long double dot = 0, of_q = 0, of_x = 0, square = 0;
      for (Index j = 0; j < items.size(1); ++j) {
        const auto a = static_cast<long double>(queries(q, j));
        const auto b = static_cast<long double>(items(i, j));
        dot += a * b;
        of_q += a * a;
        of_x += b * b;
        square += (a - b) * (a - b);
      }
      const long double key = metric == Metric::dot      ? dot
                              : metric == Metric::cosine ? dot / std::sqrt(of_q) / std::sqrt(of_x)
                                                         : -std::sqrt(square);
      scored.push_back({key, i});
    }
    std::stable_sort(scored.begin(), scored.end(),
                     [](const Scored& a, const Scored& b) { return a.key > b.key; });
    for (Index i = 0; i < k; ++i) {
      const Scored& one = scored[static_cast<std::size_t>(i)];
      result.indices(q, i) = one.item;
      result.scores(q, i) = static_cast<T>(metric == Metric::l2 ? -one.key : one.key);
    }
  }
  return result;
}

template <class T>
void expect_right(const Tensor<T>& queries, const Tensor<T>& items, Index k, Metric metric) {
  const TopK<T> found = top_k(queries, items, {.k = k, .metric = metric});
  const TopK<T> expected = reference(queries, items, k, metric);
  EXPECT_TRUE(is_near(found.indices, expected.indices));
  // Scores are those of double, whose rounding is relative to the terms, rounded to T.
  const auto unit = static_cast<double>(std::numeric_limits<T>::epsilon());
  EXPECT_TRUE(is_near(found.scores, expected.scores, {1e-12, unit}));
}

constexpr Metric all_metrics[] = {Metric::dot, Metric::cosine, Metric::l2};

TEST(TopK, RanksTheRowsOfASmallTable) {
  const auto items = Tensor<double>::matrix({{1, 0}, {0, 1}, {3, 4}, {-1, 0}});
  const auto query = Tensor<double>::matrix({{1, 0}});
  const TopK<double> dot = top_k(query, items, {.k = 4, .metric = Metric::dot});
  EXPECT_TRUE(has_elements(dot.indices.view(), {2, 0, 1, 3}));
  EXPECT_TRUE(has_elements(dot.scores.view(), {3, 1, 0, -1}));
  const TopK<double> cosine = top_k(query, items, {.k = 4, .metric = Metric::cosine});
  EXPECT_TRUE(has_elements(cosine.indices.view(), {0, 2, 1, 3}));
  EXPECT_TRUE(has_elements(cosine.scores.view(), {1, 0.6, 0, -1}));
  const TopK<double> l2 = top_k(query, items, {.k = 4, .metric = Metric::l2});
  EXPECT_TRUE(has_elements(l2.indices.view(), {0, 1, 3, 2}));
  EXPECT_TRUE(has_elements(l2.scores.view(), {0, std::sqrt(2.0), 2, std::sqrt(20.0)}));
}

TEST(TopK, AgreesWithLongDoubleForEveryShape) {
  struct Size {
    Index queries, items, d, k;
  };
  // Both ways of scoring (up to 16 queries and more), k of one and of all, odd sizes, d = 1.
  for (const auto [queries, items, d, k] : {Size{1, 1, 1, 1},
                                            {1, 50, 1, 3},
                                            {3, 100, 7, 10},
                                            {16, 33, 65, 33},
                                            {17, 33, 65, 33},
                                            {20, 129, 31, 1},
                                            {40, 70, 16, 12}}) {
    for (const Metric metric : all_metrics) {
      if (d == 1 && metric == Metric::cosine) continue;  // every one is 1 or -1, up to rounding
      SCOPED_TRACE(std::to_string(queries) + " " + std::to_string(items) + " " + std::to_string(d));
      expect_right(random_rows<float>(queries, d, 1), random_rows<float>(items, d, 2), k, metric);
      expect_right(random_rows<double>(queries, d, 1), random_rows<double>(items, d, 2), k, metric);
    }
  }
}

TEST(TopK, OnUnitVectorsTheThreeMetricsRankAlike) {
  const Tensor<double> queries = normalized(random_rows<double>(20, 24, 3));
  const Tensor<double> items = normalized(random_rows<double>(200, 24, 4));
  const TopK<double> dot = top_k(queries, items, {.k = 30, .metric = Metric::dot});
  for (const Metric metric : {Metric::cosine, Metric::l2}) {
    EXPECT_TRUE(is_near(top_k(queries, items, {.k = 30, .metric = metric}).indices, dot.indices));
  }
  // |q - x|^2 = 2 - 2 q x.
  const TopK<double> l2 = top_k(queries, items, {.k = 30, .metric = Metric::l2});
  for (Index i = 0; i < l2.scores.count(); ++i) {
    EXPECT_NEAR(l2.scores.data()[i] * l2.scores.data()[i], 2 - 2 * dot.scores.data()[i], 1e-14);
  }
}

TEST(TopK, EqualScoresAreRankedByIndex) {
  for (const Index queries : {1, 20}) {
    for (const Metric metric : all_metrics) {
      const Tensor<float> query({queries, 5}, 1.0F);
      const Tensor<float> items({300, 5}, 2.0F);
      const TopK<float> found = top_k(query, items, {.k = 4, .metric = metric});
      for (Index q = 0; q < queries; ++q) {
        for (Index i = 0; i < 4; ++i) EXPECT_EQ(found.indices(q, i), i);
      }
    }
  }
}

TEST(TopK, FindsDifferencesThatFloatScoresDoNotShow) {
  // All items agree to 1e-6 of their length, so that rounding in float reorders their scores.
  for (const Index n_queries : {2, 18}) {
    Tensor<float> items = random_rows<float>(200, 40, 5);
    for (Index i = 0; i < items.count(); ++i) {
      items.data()[i] = 1.0F + 1e-6F * items.data()[i];
    }
    const Tensor<float> queries = random_rows<float>(n_queries, 40, 6);
    for (const Metric metric : all_metrics) expect_right(queries, items, 7, metric);
  }
}

TEST(TopK, DistancesSurviveAnOffset) {
  // faiss and scikit-learn, which expand |q - x|^2, find other neighbours here (faiss issue 297).
  for (const Index n_queries : {3, 25}) {
    Tensor<float> queries = random_rows<float>(n_queries, 8, 7);
    Tensor<float> items = random_rows<float>(150, 8, 8);
    for (Tensor<float>* const rows : {&queries, &items}) {
      for (Index i = 0; i < rows->count(); ++i) rows->data()[i] += 10000.0F;
    }
    for (Index j = 0; j < 8; ++j) queries(0, j) = items(77, j);
    expect_right(queries, items, 5, Metric::l2);
    const TopK<float> found = top_k(queries, items, {.k = 1, .metric = Metric::l2});
    EXPECT_EQ(found.indices(0, 0), 77);
    EXPECT_EQ(found.scores(0, 0), 0);
  }
}

TEST(TopK, WorksAtExtremeScales) {
  for (const Index n_queries : {2, 18}) {
    for (const double scale : {1e-30, 1e-18, 1e18, 1e30}) {
      const Tensor<float> queries = random_rows<float>(n_queries, 9, 9);
      const Tensor<float> items = random_rows<float>(60, 9, 10);
      Tensor<float> scaled_items(items), scaled_queries(queries);
      for (Tensor<float>* const rows : {&scaled_items, &scaled_queries}) {
        for (Index i = 0; i < rows->count(); ++i) rows->data()[i] *= static_cast<float>(scale);
      }
      SCOPED_TRACE(scale);
      for (const Metric metric : {Metric::cosine, Metric::l2}) {
        const TopK<float> plain = top_k(queries, items, {.k = 6, .metric = metric});
        const TopK<float> scaled = top_k(scaled_queries, scaled_items, {.k = 6, .metric = metric});
        EXPECT_TRUE(is_near(scaled.indices, plain.indices));
      }
      const TopK<float> plain = top_k(queries, items, {.k = 6});
      EXPECT_TRUE(is_near(top_k(queries, scaled_items, {.k = 6}).indices, plain.indices));
    }
  }
}

TEST(TopK, DoublesWhoseSquaresUnderOrOverflowHaveDistancesAndCosines) {
  for (const double scale : {1e-200, 1e200}) {
    const auto items = Tensor<double>::matrix({{scale, 0}, {3 * scale, 4 * scale}});
    const auto query = Tensor<double>::matrix({{scale, 0}});
    const TopK<double> cosine = top_k(query, items, {.k = 2, .metric = Metric::cosine});
    EXPECT_TRUE(is_near(cosine.scores, Tensor<double>::matrix({{1, 0.6}}), {1e-15, 0}));
    const TopK<double> l2 = top_k(query, items, {.k = 2, .metric = Metric::l2});
    EXPECT_TRUE(
        is_near(l2.scores, Tensor<double>::matrix({{0, std::sqrt(20.0) * scale}}), {0, 1e-15}));
  }
}

TEST(TopK, OfViewsIsThatOfTheirCopies) {
  const Tensor<float> wide = random_rows<float>(12, 90, 11);
  const auto items = TensorView<const float>(wide.view()).transpose().slice(0, {1, 88, 3});
  for (const Index n : {2, 20}) {
    const Tensor<float> source = random_rows<float>(12, 2 * n, 12);
    const auto queries = TensorView<const float>(source.view()).transpose().slice(0, {0, 2 * n, 2});
    for (const Metric metric : all_metrics) {
      const TopK<float> of_view = top_k(queries, items, {.k = 5, .metric = metric});
      const TopK<float> of_copy =
          top_k(Tensor<float>(queries), Tensor<float>(items), {.k = 5, .metric = metric});
      EXPECT_TRUE(is_near(of_view.indices, of_copy.indices));
      EXPECT_TRUE(is_near(of_view.scores, of_copy.scores));
    }
  }
}

TEST(TopK, ManyChunksAndThreadsGiveOneAnswer) {
  const Tensor<float> items = random_rows<float>(9001, 6, 13);
  for (const Index n : {1, 18}) {
    const Tensor<float> queries = random_rows<float>(n, 6, 14);
    set_thread_count(1);
    const TopK<float> one = top_k(queries, items, {.k = 7});
    set_thread_count(3);
    const TopK<float> three = top_k(queries, items, {.k = 7});
    set_thread_count(0);
    EXPECT_TRUE(is_near(one.indices, three.indices));
    EXPECT_TRUE(is_near(one.scores, three.scores));
    EXPECT_TRUE(is_near(one.indices, reference(queries, items, 7, Metric::dot).indices));
  }
}

TEST(TopK, AZeroVectorHasTheCosineThatIsAskedFor) {
  const auto items = Tensor<double>::matrix({{0, 0}, {-1, 0}, {1, 0}});
  const auto query = Tensor<double>::matrix({{2, 0}});
  const auto options = [](ZeroVector zeros) {
    return TopKOptions{.k = 3, .metric = Metric::cosine, .zero_vector = zeros};
  };
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { top_k(query, items, options(ZeroVector::error)); }),
      "top_k: row 0 of items is zero, but a cosine needs a direction\n"
      "  hint: zero_vector = zero counts it as similarity 0, zero_vector = nan ranks it last");
  const TopK<double> zero = top_k(query, items, options(ZeroVector::zero));
  EXPECT_TRUE(has_elements(zero.indices.view(), {2, 0, 1}));
  EXPECT_TRUE(has_elements(zero.scores.view(), {1, 0, -1}));
  const TopK<double> last = top_k(query, items, options(ZeroVector::nan));
  EXPECT_TRUE(has_elements(last.indices.view(), {2, 1, 0}));
  EXPECT_TRUE(std::isnan(last.scores(0, 2)));
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              top_k(Tensor<double>({1, 2}), query, {.k = 1, .metric = Metric::cosine});
            }).substr(0, 63),
            "top_k: row 0 of queries is zero, but a cosine needs a direction");
  // A zero vector is as good as any other for the other metrics.
  EXPECT_TRUE(has_elements(top_k(query, items, {.k = 3}).indices.view(), {2, 0, 1}));
}

TEST(TopK, NanIsAnErrorUnlessItIsToBeLast) {
  for (const Index n : {1, 18}) {
    for (const Metric metric : all_metrics) {
      Tensor<float> items = random_rows<float>(40, 5, 15);
      Tensor<float> queries = random_rows<float>(n, 5, 16);
      const TopK<float> clean = top_k(queries, items, {.k = 39, .metric = metric});
      items(clean.indices(0, 0), 3) = nan<float>;
      const std::string position = "(" + std::to_string(clean.indices(0, 0)) + ", 3)";
      const auto refuse = [&] { top_k(queries, items, {.k = 2, .metric = metric}); };
      EXPECT_NE(thrown_by<ArgumentError>(refuse).find("top_k: items has a NaN at " + position),
                std::string::npos);
      const TopK<float> last =
          top_k(queries, items, {.k = 40, .metric = metric, .nan = NanScores::last});
      EXPECT_EQ(last.indices(0, 0), clean.indices(0, 1));
      EXPECT_EQ(last.indices(0, 39), clean.indices(0, 0));
      EXPECT_TRUE(std::isnan(last.scores(0, 39)));
      items(clean.indices(0, 0), 3) = infinity<float>;
      EXPECT_NE(thrown_by<ArgumentError>(refuse).find("top_k: items has an Inf at " + position),
                std::string::npos);
      items(clean.indices(0, 0), 3) = -infinity<float>;
      EXPECT_NE(thrown_by<ArgumentError>(refuse).find("top_k: items has a -Inf at " + position),
                std::string::npos);
      queries(n - 1, 2) = nan<float>;
      EXPECT_NE(thrown_by<ArgumentError>(refuse).find("top_k: queries has a NaN at"),
                std::string::npos);
    }
  }
}

TEST(TopK, AQueryOfNanLeavesTheItemsInTheirOrder) {
  Tensor<double> queries = random_rows<double>(18, 5, 17);
  queries(3, 1) = nan<double>;
  const Tensor<double> items = random_rows<double>(30, 5, 18);
  for (const Metric metric : all_metrics) {
    const TopK<double> found =
        top_k(queries, items, {.k = 3, .metric = metric, .nan = NanScores::last});
    for (Index i = 0; i < 3; ++i) {
      EXPECT_EQ(found.indices(3, i), i);
      EXPECT_TRUE(std::isnan(found.scores(3, i)));
    }
  }
}

TEST(TopK, NamesTravelAndNoQueriesHaveNoNeighbors) {
  const Tensor<float> items = random_rows<float>(9, 3, 19).named({"token", "d_model"});
  const Tensor<float> queries = random_rows<float>(4, 3, 20).named({"prompt", "d_model"});
  EXPECT_EQ(to_string(top_k(queries, items, {.k = 2}).indices.shape()), "4x2 (prompt, neighbor)");
  EXPECT_EQ(to_string(top_k(Tensor<float>({0, 3}), items, {.k = 2}).scores.shape()),
            "0x2 (?, neighbor)");
}

TEST(TopK, RefusesWhatDoesNotFit) {
  const Tensor<double> items = random_rows<double>(7, 3, 21);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { top_k(items, items, {.k = 8}); }),
            "top_k: k is 8, but items is 7x3 and has 1 to 7 neighbors");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { top_k(items, items, {.k = 0}); }),
            "top_k: k is 0, but items is 7x3 and has 1 to 7 neighbors");
  EXPECT_EQ(thrown_by<ShapeError>([&] { top_k(Tensor<double>({3}), items); }),
            "top_k: queries is 3 and items is 7x3, but both must be matrices with a vector in each "
            "row\n  hint: a single vector of d elements is the matrix 1xd");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              top_k(Tensor<double>({2, 4}), items);
            }),
            "top_k: queries is 2x4 and items is 7x3, but both must have the same number of "
            "columns");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              top_k(Tensor<double>({2, 7}), items);
            }),
            "top_k: queries is 2x7 and items is 7x3, but both must have the same number of "
            "columns\n  hint: with items transposed they fit");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              top_k(Tensor<double>({2, 3}).named({"", "d_head"}),
                    Tensor<double>(items).named({"", "d_model"}));
            }),
            "top_k: queries is 2x3 (?, d_head) and items is 7x3 (?, d_model), but their columns "
            "must have the same name");
}

}  // namespace
}  // namespace eckart
