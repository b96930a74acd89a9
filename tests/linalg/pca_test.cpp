#include "eckart/linalg/pca.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"

#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::Bound;
using testing::is_near;
using testing::tensor_of;
using testing::thrown_by;
using testing::worked_examples;
using testing::WorkedExample;

constexpr double eps = std::numeric_limits<double>::epsilon();
constexpr double float_eps = static_cast<double>(std::numeric_limits<float>::epsilon());
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor<double> absolute(const Tensor<double>& tensor) {
  Tensor<double> result(tensor);
  for (Index i = 0; i < result.count(); ++i) result.data()[i] = std::abs(result.data()[i]);
  return result;
}

// Rows with independent columns of these standard deviations around these means.
Tensor<double> samples(Index n, const std::vector<double>& deviations, double mean,
                       std::uint64_t seed) {
  const auto d = static_cast<Index>(deviations.size());
  Tensor<double> x = Tensor<double>::uninitialized({n, d});
  RandomStream(seed).fill_normal(std::span<double>(x.data(), static_cast<std::size_t>(x.count())));
  for (Index i = 0; i < x.count(); ++i) {
    const Index j = i % d;
    x.data()[i] =
        x.data()[i] * deviations[static_cast<std::size_t>(j)] + mean * (1 + static_cast<double>(j));
  }
  return x;
}

template <class T>
Tensor<T> rounded(const Tensor<double>& x) {
  Tensor<T> result = Tensor<T>::uninitialized(x.shape());
  for (Index i = 0; i < x.count(); ++i) result.data()[i] = static_cast<T>(x.data()[i]);
  return result;
}

// The covariance, term by term.
Tensor<double> covariance(const Tensor<double>& x) {
  const Index n = x.size(0);
  const Index d = x.size(1);
  std::vector<double> mean(static_cast<std::size_t>(d), 0);
  for (Index i = 0; i < n * d; ++i) {
    mean[static_cast<std::size_t>(i % d)] += x.data()[i] / static_cast<double>(n);
  }
  Tensor<double> result({d, d});
  for (Index i = 0; i < n; ++i) {
    for (Index a = 0; a < d; ++a) {
      for (Index b = 0; b < d; ++b) {
        result(a, b) += (x(i, a) - mean[static_cast<std::size_t>(a)]) *
                        (x(i, b) - mean[static_cast<std::size_t>(b)]) / static_cast<double>(n - 1);
      }
    }
  }
  return result;
}

// Components are orthonormal eigenvectors of the covariance with the stated variances, to
// `tolerance` of the largest.
template <class T>
void expect_eigenpairs(const Pca<T>& model, const Tensor<double>& x, double tolerance) {
  const Tensor<double> c = covariance(x);
  const Index k = model.components.size(0);
  const Index d = c.size(0);
  const double scale = std::max(model.explained_variance(0), 1e-300);
  for (Index i = 0; i < k; ++i) {
    const auto v = [&](Index j) { return static_cast<double>(model.components(i, j)); };
    for (Index a = 0; a < d; ++a) {
      double image = 0;
      for (Index b = 0; b < d; ++b) image += c(a, b) * v(b);
      EXPECT_NEAR(image, model.explained_variance(i) * v(a), tolerance * scale) << i << " " << a;
    }
    for (Index other = 0; other <= i; ++other) {
      double product = 0;
      for (Index j = 0; j < d; ++j) {
        product += v(j) * static_cast<double>(model.components(other, j));
      }
      EXPECT_NEAR(product, other == i ? 1.0 : 0.0, tolerance) << other << " " << i;
    }
    if (i > 0) {
      EXPECT_LE(model.explained_variance(i), model.explained_variance(i - 1));
    }
  }
}

TEST(Pca, AgreesWithTheWorkedExamples) {
  for (const WorkedExample& example : worked_examples("pca")) {
    SCOPED_TRACE(example.id);
    const Tensor<double> x = tensor_of(example.inputs.at("x"));
    const Pca<double> model = pca(x, {.k = example.inputs.at("k")});
    const Bound bound{example.tolerance, 0};
    const auto& expect = example.expect;
    if (expect.contains("mean")) {
      EXPECT_TRUE(is_near(model.mean, tensor_of(expect["mean"]), bound));
    }
    if (expect.contains("components_abs")) {
      EXPECT_TRUE(is_near(absolute(model.components), tensor_of(expect["components_abs"]), bound));
      EXPECT_TRUE(is_near(model.explained_variance_ratio,
                          tensor_of(expect["explained_variance_ratio"]), bound));
    }
    if (expect.contains("scores_first_abs")) {
      const Tensor<double> scores = absolute(transform(model, x));
      EXPECT_TRUE(is_near(Tensor<double>(scores.view().select(1, 0)),
                          tensor_of(expect["scores_first_abs"]), bound));
      const Pca<double> one = pca(x, {.k = 1});
      const Tensor<double> back = inverse_transform(one, transform(one, x));
      double worst = 0;
      for (Index i = 0; i < x.count(); ++i) {
        worst = std::max(worst, std::abs(back.data()[i] - x.data()[i]));
      }
      EXPECT_NEAR(worst, expect["reconstruction_max_error_k1"].get<double>(), example.tolerance);
    }
    if (expect.contains("cumulative_at")) {
      for (const auto& [count, share] : expect["cumulative_at"].items()) {
        double sum = 0;
        for (Index i = 0; i < std::stol(count); ++i) sum += model.explained_variance_ratio(i);
        EXPECT_NEAR(sum, share.get<double>(), example.tolerance) << count;
      }
      const Index wanted = expect["components_for_90_percent"].get<Index>();
      EXPECT_EQ(components_for_share(model.explained_variance_ratio, 0.9), wanted);
      EXPECT_EQ(pca(x, {.share = 0.9}).components.size(0), wanted);
    }
    EXPECT_EQ(model.warnings.size(), example.id == "pca-units" ? 1U : 0U);
  }
}

TEST(Pca, OfPointsOnALineIsThatLine) {
  // (1, 1) + t (3, 4) / 5 for t = -5, 0, 5: the variance along the line is 25.
  const auto x = Tensor<double>::matrix({{-2, -3}, {1, 1}, {4, 5}});
  const Pca<double> model = pca(x);
  EXPECT_TRUE(is_near(model.components.view().slice(0, {0, 1, 1}),
                      Tensor<double>::matrix({{0.6, 0.8}}).view(), {4 * eps, 0}));
  EXPECT_NEAR(model.explained_variance(0), 25, 100 * eps);
  EXPECT_NEAR(model.explained_variance(1), 0, 100 * eps);
  EXPECT_EQ(model.rank, 1);
  EXPECT_TRUE(is_near(transform(model, x), Tensor<double>::matrix({{-5, 0}, {0, 0}, {5, 0}}),
                      {40 * eps, 0}));
}

TEST(Pca, FindsEigenpairsOfTheCovarianceForEveryShapeAndSolver) {
  struct Size {
    Index n, d;
  };
  for (const auto [n, d] : {Size{2, 1}, {2, 5}, {5, 2}, {7, 7}, {40, 13}, {13, 40}, {33, 32}}) {
    std::vector<double> deviations;
    for (Index j = 0; j < d; ++j) deviations.push_back(1 + static_cast<double>(j));
    const Tensor<double> x = samples(n, deviations, 10, 3);
    for (const PcaSolver solver : {PcaSolver::automatic, PcaSolver::covariance, PcaSolver::svd}) {
      SCOPED_TRACE(std::to_string(n) + "x" + std::to_string(d) + " " +
                   std::string(to_string(solver)));
      const Pca<double> model = pca(x, {.solver = solver});
      EXPECT_EQ(model.components.size(0), std::min(n, d));
      EXPECT_EQ(model.n_samples, n);
      if (solver == PcaSolver::automatic) {
        EXPECT_EQ(model.solver, n < d ? PcaSolver::svd : PcaSolver::covariance);
      }
      // Backward error of LAPACK and of the sums: some n eps of the largest variance and mean.
      expect_eigenpairs(model, x, 1e-12);
    }
  }
}

TEST(Pca, InFloatIsAsGoodAsItsInput) {
  const Tensor<double> exact = samples(60, {5, 4, 3, 2, 1, 0.5}, 10, 4);
  const Tensor<float> x = rounded<float>(exact);
  const Tensor<double> given = rounded<double>(samples(60, {5, 4, 3, 2, 1, 0.5}, 10, 4));
  const Pca<float> model = pca(x, {.k = 6});
  expect_eigenpairs(model, given, 8 * float_eps);
}

TEST(Pca, OfTransposedAndSlicedViewsIsThatOfTheirCopies) {
  const Tensor<double> x = samples(24, {3, 2, 1, 0.5, 0.25}, 2, 5);
  const Tensor<double> wide(x.view().transpose());
  const auto view = TensorView<const double>(wide.view()).transpose().slice(0, {1, 23, 3});
  const Pca<double> of_view = pca(view);
  const Pca<double> of_copy = pca(Tensor<double>(view));
  EXPECT_TRUE(is_near(of_view.components, of_copy.components));
  EXPECT_TRUE(is_near(transform(of_view, view), transform(of_copy, Tensor<double>(view))));
}

TEST(Pca, OffsetsOfTheColumnsCostNoDigits) {
  const std::vector<double> deviations = {1, 0.5, 0.2, 0.1};
  const Pca<double> plain = pca(samples(3000, deviations, 0, 6));
  const Pca<double> shifted = pca(samples(3000, deviations, 1e6, 6));
  // The samples themselves are rounded to 4e6 eps.
  EXPECT_TRUE(is_near(shifted.explained_variance, plain.explained_variance, {1e-9, 0}));
}

TEST(Pca, ARowOfDriftingBlocksHasTheVarianceOfAll) {
  // The mean of a block says nothing of the next one's.
  const Index n = 9000;
  Tensor<float> x = Tensor<float>::uninitialized({n, 2});
  for (Index i = 0; i < n; ++i) {
    x(i, 0) = static_cast<float>(i);
    x(i, 1) = static_cast<float>(i % 2);
  }
  // Variance of 0 … n - 1: n (n + 1) / 12.
  for (const PcaProducts products : {PcaProducts::in_double, PcaProducts::in_float}) {
    const PcaState state = pca_state(x, products);
    const double exact = static_cast<double>(n) * static_cast<double>(n + 1) / 12;
    EXPECT_NEAR(state.scatter(0, 0) / static_cast<double>(n - 1), exact, 1e-7 * exact);
  }
}

TEST(Pca, RowsThatMisleadASampleCostNoDigits) {
  // Every 32nd row is far from the others: the mean of such rows alone is no shift for all.
  Tensor<float> x = rounded<float>(samples(4096, {1, 0.5}, 0, 12));
  for (Index i = 0; i < 4096; i += 32) x(i, 0) += 3000;
  const PcaState in_float = pca_state(x, PcaProducts::in_float);
  const PcaState in_double = pca_state(x, PcaProducts::in_double);
  // Products of floats are good to 2e-7 of the variances; the covariance has their mean's size.
  const double first = in_double.scatter(0, 0), second = in_double.scatter(1, 1);
  EXPECT_NEAR(in_float.scatter(0, 0), first, 1e-6 * first);
  EXPECT_NEAR(in_float.scatter(1, 1), second, 1e-6 * second);
  EXPECT_NEAR(in_float.scatter(0, 1), in_double.scatter(0, 1), 1e-6 * std::sqrt(first * second));
}

TEST(Pca, StatesOfAnyPiecesMergeToTheStateOfAll) {
  const Tensor<double> x = samples(90, {3, 2, 1}, 100, 7);
  const PcaState whole = pca_state(x);
  PcaState left, right;
  for (const Index end : {0, 1, 20, 90}) {
    const Index begin = left.n_samples;
    if (end > begin)
      left = merged(left, pca_state(TensorView<const double>(x.view()).slice(0, {begin, end, 1})));
  }
  for (Index begin = 60; begin >= 0; begin -= 30) {
    right = merged(pca_state(TensorView<const double>(x.view()).slice(0, {begin, begin + 30, 1})),
                   right);
  }
  for (const PcaState& state : {left, right}) {
    EXPECT_EQ(state.n_samples, 90);
    EXPECT_TRUE(is_near(state.mean, whole.mean, {0, 8 * eps}));
    EXPECT_TRUE(is_near(state.scatter, whole.scatter, {1e-11, 1e-12}));
  }
  EXPECT_TRUE(is_near(pca<double>(left).explained_variance, pca(x).explained_variance, {0, 1e-12}));
  const auto refuse = [&] { merged(left, pca_state(samples(4, {1, 1}, 0, 1))); };
  EXPECT_EQ(thrown_by<ShapeError>(refuse),
            "pca: one state is of rows of 3 columns and the other of 2, but both must have the "
            "same number");
}

TEST(Pca, ProductsOfFloatsReachSixDigits) {
  const Tensor<float> x = rounded<float>(samples(5000, {1, 0.9, 0.7, 0.5, 0.4}, 10, 8));
  const Pca<float> in_float = pca<float>(pca_state(x, PcaProducts::in_float));
  const Pca<float> in_double = pca<float>(pca_state(x, PcaProducts::in_double));
  EXPECT_TRUE(is_near(in_float.explained_variance, in_double.explained_variance, {0, 1e-6}));
}

TEST(Pca, ProductsOfFloatsThatWouldOverflowAreOfDoubles) {
  for (const double scale : {1e-30, 1e-12, 1e20, 1e30}) {
    Tensor<float> x = rounded<float>(samples(50, {3, 2, 1}, 1, 9));
    const Pca<float> plain = pca<float>(pca_state(x, PcaProducts::in_float));
    for (Index i = 0; i < x.count(); ++i) x.data()[i] *= static_cast<float>(scale);
    const Pca<float> scaled = pca<float>(pca_state(x, PcaProducts::in_float));
    for (Index i = 0; i < 3; ++i) {
      // Scaling rounds the elements once more.
      EXPECT_NEAR(scaled.explained_variance(i) / scale / scale / plain.explained_variance(i), 1,
                  1e-5)
          << scale;
    }
  }
}

TEST(Pca, ExtremeScalesKeepTheirRatios) {
  for (const double scale : {1e-100, 1e-30, 1e30, 1e100}) {
    Tensor<double> x = samples(30, {3, 2, 1}, 1, 10);
    const Pca<double> plain = pca(x);
    for (Index i = 0; i < x.count(); ++i) x.data()[i] *= scale;
    EXPECT_TRUE(
        is_near(pca(x).explained_variance_ratio, plain.explained_variance_ratio, {1e-13, 0}))
        << scale;
  }
}

TEST(Pca, SignsAreFixedByTheLargestElement) {
  Tensor<double> x = samples(50, {3, 2, 1, 0.5}, 0, 11);
  const Pca<double> model = pca(x);
  for (Index i = 0; i < x.count(); ++i) x.data()[i] = -x.data()[i];
  const Pca<double> mirrored = pca(x);
  EXPECT_TRUE(is_near(mirrored.components, model.components, {1e-12, 0}));
  for (Index i = 0; i < 4; ++i) {
    double largest = 0;
    for (Index j = 0; j < 4; ++j) {
      if (std::abs(model.components(i, j)) > std::abs(largest)) largest = model.components(i, j);
    }
    EXPECT_GT(largest, 0);
  }
}

TEST(Pca, AllComponentsReconstructTheRows) {
  const Tensor<double> x = samples(20, {3, 2, 1}, 5, 12);
  for (const bool whiten : {false, true}) {
    for (const PcaScale scale : {PcaScale::none, PcaScale::standard}) {
      const Pca<double> model = pca(x, {.scale = scale, .whiten = whiten});
      EXPECT_TRUE(is_near(inverse_transform(model, transform(model, x)), x, {1e-12, 0}));
    }
  }
}

TEST(Pca, WhitenedScoresHaveVarianceOneAndNoCorrelation) {
  const Tensor<double> x = samples(200, {30, 2, 0.1}, 5, 13);
  const Pca<double> model = pca(x, {.scale = PcaScale::standard, .whiten = true});
  const Tensor<double> identity = Tensor<double>::matrix({{1, 0, 0}, {0, 1, 0}, {0, 0, 1}});
  EXPECT_TRUE(is_near(covariance(transform(model, x)), identity, {1e-12, 0}));
}

TEST(Pca, WhiteningARankDeficientSetGivesZerosAndSaysSo) {
  Tensor<double> x = samples(40, {3, 2, 1}, 5, 14);
  for (Index i = 0; i < 40; ++i) x(i, 2) = x(i, 0) + x(i, 1);
  const Pca<double> model = pca(x, {.whiten = true});
  EXPECT_EQ(model.rank, 2);
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings[0], "1 of 3 components have no variance: their whitened scores are 0");
  const Tensor<double> scores = transform(model, x);
  for (Index i = 0; i < 40; ++i) EXPECT_EQ(scores(i, 2), 0);
  EXPECT_TRUE(is_near(inverse_transform(model, scores), x, {1e-12, 0}));
}

TEST(Pca, ScalingIsFittedOnTheTrainingSetAlone) {
  const auto train = Tensor<double>::matrix({{0, 0}, {2, 200}, {4, 100}});
  const Pca<double> model = pca(train, {.scale = PcaScale::standard});
  EXPECT_TRUE(is_near(model.scale, Tensor<double>::vector({2, 100}), {0, 4 * eps}));
  EXPECT_TRUE(is_near(model.mean, Tensor<double>::vector({2, 100}), {0, 4 * eps}));
  EXPECT_NEAR(model.total_variance, 2, 8 * eps);
  // One row has no scale of its own: it takes the training set's.
  const Tensor<double> one = transform(model, Tensor<double>::matrix({{4, 200}}));
  EXPECT_NEAR(std::abs(one(0, 0)), std::sqrt(2.0), 1e-14);
}

TEST(Pca, ColumnsOfDifferentUnitsAreAWarning) {
  const auto x = Tensor<double>::matrix({{0, 0}, {1, 1000}, {2, 500}});
  const Pca<double> model = pca(x);
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings[0],
            "column 1 varies 500 times as much as column 0 (standard deviations 500 and 1): if "
            "these are different units, scale the columns by their standard deviations");
  EXPECT_TRUE(pca(x, {.scale = PcaScale::standard}).warnings.empty());
}

TEST(Pca, AConstantColumnIsNeitherScaledNorAUnit) {
  const auto x = Tensor<double>::matrix({{0.1, 1}, {0.1, 2}, {0.1, 4}});
  for (const PcaScale scale : {PcaScale::none, PcaScale::standard}) {
    const Pca<double> model = pca(x, {.scale = scale});
    ASSERT_EQ(model.warnings.size(), 1U);
    EXPECT_EQ(model.warnings[0], "1 of 2 columns are constant");
    EXPECT_TRUE(
        is_near(absolute(model.components), Tensor<double>::matrix({{0, 1}, {1, 0}}), {1e-15, 0}));
    EXPECT_EQ(model.rank, 1);
  }
  const Pca<double> nothing = pca(Tensor<double>({4, 3}, 7.0), {.whiten = true});
  EXPECT_EQ(nothing.rank, 0);
  EXPECT_EQ(nothing.explained_variance_ratio(0), 0);
}

TEST(Pca, TheRandomizedSolverFindsWhatTheCovarianceHas) {
  std::vector<double> deviations;
  for (int j = 0; j < 40; ++j) deviations.push_back(std::pow(0.7, j));
  const Tensor<double> x = samples(60, deviations, 10, 15);
  const Pca<double> exact = pca(x, {.k = 4});
  const Pca<double> found = pca(x, {.k = 4, .solver = PcaSolver::randomized, .seed = 1});
  EXPECT_TRUE(found.converged);
  EXPECT_GT(found.iterations, 0);
  EXPECT_EQ(found.solver, PcaSolver::randomized);
  EXPECT_TRUE(is_near(found.explained_variance, exact.explained_variance, {0, 1e-6}));
  // An eigenvalue that is right to 1e-6 has a vector that is right to about its root.
  EXPECT_TRUE(is_near(found.components, exact.components, {1e-2, 0}));
  EXPECT_NEAR(found.total_variance, exact.total_variance, 1e-12 * exact.total_variance);
  const Pca<float> in_float =
      pca(rounded<float>(x), {.k = 4, .solver = PcaSolver::randomized, .seed = 1});
  EXPECT_TRUE(is_near(in_float.explained_variance, exact.explained_variance, {0, 1e-5}));
}

TEST(Pca, IsTheSameForEveryNumberOfThreads) {
  const Tensor<float> many = rounded<float>(samples(20000, {1, 1, 1}, 3, 16));
  set_thread_count(1);
  const PcaState alone = pca_state(many, PcaProducts::in_float);
  set_thread_count(3);
  const PcaState shared = pca_state(many, PcaProducts::in_float);
  EXPECT_TRUE(is_near(alone.mean, shared.mean));
  EXPECT_TRUE(is_near(alone.scatter, shared.scatter));
  const Tensor<float> x = rounded<float>(samples(400, {9, 8, 7, 6, 5, 4, 3, 2, 1}, 3, 16));
  for (const PcaSolver solver : {PcaSolver::covariance, PcaSolver::randomized}) {
    set_thread_count(1);
    const Pca<float> one = pca(x, {.k = 3, .solver = solver});
    set_thread_count(3);
    const Pca<float> three = pca(x, {.k = 3, .solver = solver});
    set_thread_count(0);
    // LAPACK sums in another order on several threads; what it is given is the same.
    EXPECT_TRUE(is_near(one.components, three.components, {1e-6, 0}));
    EXPECT_TRUE(is_near(one.explained_variance, three.explained_variance, {0, 1e-13}));
  }
}

TEST(Pca, AxisNamesTravel) {
  const Tensor<double> x = samples(9, {2, 1}, 0, 17).named({"token", "d_model"});
  const Pca<double> model = pca(x, {.k = 1});
  EXPECT_EQ(to_string(model.mean.shape()), "2 (d_model)");
  EXPECT_EQ(to_string(model.components.shape()), "1x2 (component, d_model)");
  const Tensor<double> scores = transform(model, x);
  EXPECT_EQ(to_string(scores.shape()), "9x1 (token, component)");
  EXPECT_EQ(to_string(inverse_transform(model, scores).shape()), "9x2 (token, d_model)");
}

TEST(Pca, RefusesWhatHasNoComponents) {
  const Tensor<double> x = samples(5, {2, 1}, 0, 18);
  const auto refusal = [&](const PcaOptions& options) {
    return thrown_by<ArgumentError>([&] { pca(x, options); });
  };
  EXPECT_EQ(refusal({.k = 3}),
            "pca: k is 3, but x is 5x2 and has 1 to 2 components\n"
            "  hint: leave k out for all of them");
  EXPECT_EQ(refusal({.k = -1}),
            "pca: k is -1, but x is 5x2 and has 1 to 2 components\n"
            "  hint: leave k out for all of them");
  EXPECT_EQ(refusal({.share = 1.5}),
            "pca: the share is 1.5, but a share of the variance is above 0 and at most 1");
  EXPECT_EQ(refusal({.k = 1, .share = 0.5}),
            "pca: both k and share are given, but each alone says how many components\n"
            "  hint: leave one of them out");
  EXPECT_EQ(refusal({.solver = PcaSolver::randomized}),
            "pca: the randomized solver has no k, but it finds a number of components that is "
            "given\n  hint: give k, or choose another solver");
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              pca(Tensor<double>({1, 4}));
            }),
            "pca: x is 1x4, but one row has no variance\n"
            "  hint: a training set has at least 2 rows");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              pca(Tensor<double>({0, 4}));
            }),
            "pca: x is 0x4, but it must be a matrix with a row for each sample");
  EXPECT_EQ(thrown_by<ShapeError>([&] { pca(Tensor<double>({4})); }),
            "pca: x is 4, but it must be a matrix with a row for each sample");
}

TEST(Pca, NamesThePositionOfANanOrInfinity) {
  for (const PcaSolver solver : {PcaSolver::covariance, PcaSolver::svd, PcaSolver::randomized}) {
    Tensor<double> x = samples(5, {2, 1}, 0, 19);
    x(3, 1) = nan;
    const auto fit = [&] { pca(x, {.k = 1, .solver = solver}); };
    EXPECT_NE(thrown_by<ArgumentError>(fit).find("pca: x has a NaN at (3, 1)"), std::string::npos);
    x(3, 1) = infinity;
    EXPECT_NE(thrown_by<ArgumentError>(fit).find("pca: x has an Inf at (3, 1)"), std::string::npos);
  }
}

TEST(Pca, RefusesRowsOfAnotherWidth) {
  const Tensor<double> x = samples(5, {3, 2, 1}, 0, 20);
  const Pca<double> model = pca(x, {.k = 2});
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              transform(model, Tensor<double>({4, 2}));
            }),
            "pca: x is 4x2 and the model is of 2 components of 3 columns, but x must be a matrix "
            "of 3 columns");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              transform(model, Tensor<double>({3, 2}));
            }),
            "pca: x is 3x2 and the model is of 2 components of 3 columns, but x must be a matrix "
            "of 3 columns\n  hint: with x transposed it fits");
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              inverse_transform(model, Tensor<double>({4, 3}));
            }),
            "pca: z is 4x3 and the model is of 2 components of 3 columns, but z must be a matrix "
            "of 2 columns");
}

TEST(Pca, CountsTheComponentsOfAShare) {
  const auto ratios = Tensor<double>::vector({0.5, 0.25, 0.125});
  EXPECT_EQ(components_for_share(ratios, 0.5), 1);
  EXPECT_EQ(components_for_share(ratios, 0.500001), 2);
  EXPECT_EQ(components_for_share(ratios, 0.875), 3);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { components_for_share(ratios, 0.9); }),
            "pca: the share is 0.9, but 3 components hold 0.875\n  hint: fit more components");
}

}  // namespace
}  // namespace eckart
