#include "eckart/linalg/pca.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/pca_solvers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

using detail::ColumnStatistics;
using detail::PcaBasis;
using detail::PcaCount;

constexpr double epsilon = std::numeric_limits<double>::epsilon();
// Beyond these sizes a few directions are found without a factorisation.
constexpr Index widest_covariance = 16384;
constexpr Index least_randomized = 1024;
// Products of floats pay from this many FLOPs on, and are kept where their error, which is about
// this share of the largest variance of a column, is at most the relative error that is promised.
constexpr double least_float_work = 4e9;
constexpr double float_error = 2e-7;
constexpr double promised_error = 1e-6;
// Standard deviations further apart than this are probably of different units.
constexpr double most_scale_ratio = 100;
// Entries of a component that differ by less count as equally large.
constexpr double equal_size = 1e-6;

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

void check_options(const PcaOptions& options, Index n, Index d) {
  const Index limit = std::min(n, d);
  const std::string sizes = std::to_string(n) + "x" + std::to_string(d);
  if (n < 2) {
    throw_argument_error("pca: x is " + sizes + ", but one row has no variance",
                         "a training set has at least 2 rows");
  }
  if (options.k < 0 || options.k > limit) {
    throw_argument_error("pca: k is " + std::to_string(options.k) + ", but x is " + sizes +
                             " and has 1 to " + std::to_string(limit) + " components",
                         "leave k out for all of them");
  }
  if (!(options.share >= 0 && options.share <= 1)) {
    throw_argument_error("pca: the share is " + number(options.share) +
                         ", but a share of the variance is above 0 and at most 1");
  }
  if (options.k > 0 && options.share > 0) {
    throw_argument_error("pca: both k and share are given, but each alone says how many components",
                         "leave one of them out");
  }
  if (options.solver == PcaSolver::randomized && options.k == 0) {
    throw_argument_error(
        "pca: the randomized solver has no k, but it finds a number of components that is given",
        "give k, or choose another solver");
  }
}

template <class T>
void check_matrix(TensorView<const T> x) {
  if (x.rank() != 2 || x.count() == 0) {
    throw_shape_error("pca: x is " + to_string(x.shape()) +
                      ", but it must be a matrix with a row for each sample");
  }
}

PcaSolver solver_for(const PcaOptions& options, Index n, Index d) {
  if (options.solver != PcaSolver::automatic) return options.solver;
  const Index smaller = std::min(n, d);
  const bool is_few = options.k > 0 && 8 * options.k <= smaller;
  if (d > widest_covariance && smaller > least_randomized && is_few) return PcaSolver::randomized;
  return n < d ? PcaSolver::svd : PcaSolver::covariance;
}

// A constant column has nothing but rounding.
bool is_constant(const ColumnStatistics& columns, Index j) {
  return std::sqrt(columns.variance(j)) <= 8 * epsilon * std::abs(columns.mean(j));
}

// Fits one model; what the solvers share.
template <class T>
class Fit {
 public:
  Fit(const PcaOptions& options, ColumnStatistics columns, Index n, const Shape& shape)
      : options_(options),
        columns_(std::move(columns)),
        limit_(std::min(n, columns_.mean.count())) {
    model_.n_samples = n;
    model_.whiten = options.whiten;
    feature_ = shape.has_names() ? shape.name(-1) : "";
    for (Index j = 0; j < columns_.mean.count(); ++j) {
      if (is_constant(columns_, j)) columns_.variance(j) = 0;
    }
    choose_scale();
  }

  const Tensor<double>& mean() const { return columns_.mean; }
  const Tensor<double>& divisor() const { return divisor_; }
  PcaCount count() const { return {options_.k, options_.share, total_, limit_}; }
  /// The largest variance of a column, once scaled.
  double largest_variance() const { return largest_; }

  Pca<T> finished(PcaBasis basis, PcaSolver solver) {
    const Index k = basis.values.count();
    const Index d = columns_.mean.count();
    model_.solver = solver;
    model_.converged = basis.converged;
    model_.iterations = basis.iterations;
    model_.residual = basis.residual;
    model_.total_variance = total_;
    model_.mean = named(columns_.mean, {feature_});
    if (divisor_.count() > 0) model_.scale = named(divisor_, {feature_});
    fix_signs(basis.vectors);
    model_.components = Tensor<T>::uninitialized({k, d});
    for (Index i = 0; i < k * d; ++i) {
      model_.components.data()[i] = static_cast<T>(basis.vectors.data()[i]);
    }
    const std::string axis = feature_ == "component" ? "" : "component";
    model_.components = std::move(model_.components).named({axis, feature_});
    Tensor<double> ratios({k});
    for (Index i = 0; i < k; ++i) ratios(i) = total_ > 0 ? basis.values(i) / total_ : 0;
    count_rank(basis.values);
    model_.explained_variance = named(std::move(basis.values), {"component"});
    model_.explained_variance_ratio = named(std::move(ratios), {"component"});
    if (!model_.converged) {
      model_.warnings.push_back("the randomized solver stopped after " +
                                std::to_string(model_.iterations) +
                                " passes: neighbouring components are hardly apart");
    }
    return std::move(model_);
  }

 private:
  template <class U>
  static Tensor<U> named(Tensor<U> tensor, std::vector<std::string> names) {
    return std::move(tensor).named(std::move(names));
  }

  void choose_scale() {
    const Index d = columns_.mean.count();
    const bool scaled = options_.scale == PcaScale::standard;
    if (scaled) divisor_ = Tensor<double>({d}, 1.0);
    Index least = -1, most = -1, n_constant = 0;
    const auto& variance = columns_.variance;
    for (Index j = 0; j < d; ++j) {
      if (!std::isfinite(variance(j))) {
        throw_argument_error("pca: the variance of column " + std::to_string(j) + " of x overflows",
                             "divide x by its largest element");
      }
      if (variance(j) == 0) {
        ++n_constant;
        continue;
      }
      if (scaled) divisor_(j) = std::sqrt(variance(j));
      total_ += scaled ? 1 : variance(j);
      largest_ = std::max(largest_, scaled ? 1 : variance(j));
      if (least < 0 || variance(j) < variance(least)) least = j;
      if (most < 0 || variance(j) > variance(most)) most = j;
    }
    if (n_constant > 0) {
      model_.warnings.push_back(std::to_string(n_constant) + " of " + std::to_string(d) +
                                (d == 1 ? " column is" : " columns are") + " constant");
    }
    if (!scaled && most >= 0) warn_of_units(least, most);
  }

  void warn_of_units(Index least, Index most) {
    const double small = std::sqrt(columns_.variance(least));
    const double large = std::sqrt(columns_.variance(most));
    if (large <= most_scale_ratio * small) return;
    model_.warnings.push_back(
        "column " + std::to_string(most) + " varies " + number(large / small) +
        " times as much as column " + std::to_string(least) + " (standard deviations " +
        number(large) + " and " + number(small) +
        "): if these are different units, scale the columns by their standard deviations");
  }

  static void fix_signs(Tensor<double>& vectors) {
    const Index d = vectors.size(1);
    for (Index i = 0; i < vectors.size(0); ++i) {
      double* const row = vectors.data() + i * d;
      double largest = 0;
      for (Index j = 0; j < d; ++j) largest = std::max(largest, std::abs(row[j]));
      const double* const first = std::find_if(
          row, row + d, [&](double v) { return std::abs(v) >= largest * (1 - equal_size); });
      if (first != row + d && *first < 0) {
        for (Index j = 0; j < d; ++j) row[j] = -row[j];
      }
    }
  }

  // Below this share of the largest variance a component is made of rounding.
  void count_rank(const Tensor<double>& values) {
    const double unit = model_.solver == PcaSolver::randomized
                            ? static_cast<double>(std::numeric_limits<T>::epsilon())
                            : epsilon;
    const auto size = static_cast<double>(std::max(model_.n_samples, columns_.mean.count()));
    const Index k = values.count();
    while (model_.rank < k && values(model_.rank) > values(0) * size * unit) ++model_.rank;
    if (model_.whiten && model_.rank < k) {
      model_.warnings.push_back(std::to_string(k - model_.rank) + " of " + std::to_string(k) +
                                " components have no variance: their whitened scores are 0");
    }
  }

  const PcaOptions& options_;
  ColumnStatistics columns_;
  Tensor<double> divisor_;
  Index limit_;
  std::string feature_;
  double total_ = 0;
  double largest_ = 0;
  Pca<T> model_;
};

template <class T>
Pca<T> fit_state(const PcaState& state, const PcaOptions& options, bool& is_exact) {
  Fit<T> fit(options, detail::column_statistics(state), state.n_samples, state.mean.shape());
  PcaBasis basis = detail::basis_of_covariance(state, fit.divisor(), fit.count());
  const double smallest = basis.values.data()[basis.values.count() - 1];
  is_exact = float_error * fit.largest_variance() <= promised_error * smallest;
  return fit.finished(std::move(basis), PcaSolver::covariance);
}

template <class T>
Pca<T> fit_covariance(TensorView<const T> x, const PcaOptions& options) {
  const auto n = static_cast<double>(x.size(0));
  const auto d = static_cast<double>(x.size(1));
  bool is_exact = false;
  // All components include those too small for products of floats.
  const bool all = options.share == 0 && (options.k == 0 || options.k == x.size(1));
  if (std::is_same_v<T, float> && n * d * d >= least_float_work && !all) {
    Pca<T> model = fit_state<T>(pca_state(x, PcaProducts::in_float), options, is_exact);
    model.products = PcaProducts::in_float;
    if (is_exact) return model;
  }
  return fit_state<T>(pca_state(x, PcaProducts::in_double), options, is_exact);
}

}  // namespace

std::string_view to_string(PcaSolver solver) {
  switch (solver) {
    case PcaSolver::automatic:
      return "automatic";
    case PcaSolver::covariance:
      return "covariance";
    case PcaSolver::svd:
      return "svd";
    case PcaSolver::randomized:
      return "randomized";
  }
  return "";
}

template <class T>
Pca<T> pca(TensorView<const T> x, const PcaOptions& options) {
  check_matrix(x);
  const Index n = x.size(0);
  const Index d = x.size(1);
  check_options(options, n, d);
  const PcaSolver solver = solver_for(options, n, d);
  if (solver == PcaSolver::covariance) return fit_covariance(x, options);
  check_finite("pca", "x", x);
  Fit<T> fit(options, detail::column_statistics(x), n, x.shape());
  return fit.finished(solver == PcaSolver::svd
                          ? detail::basis_of_svd(x, fit.mean(), fit.divisor(), fit.count())
                          : detail::basis_of_subspace(x, fit.mean(), fit.divisor(), options),
                      solver);
}

template <class T>
Pca<T> pca(const PcaState& state, const PcaOptions& options) {
  check_options(options, state.n_samples, state.mean.count());
  if (options.solver != PcaSolver::automatic && options.solver != PcaSolver::covariance) {
    throw_argument_error("pca: the solver is " + std::string(to_string(options.solver)) +
                             ", but a state has no rows any more",
                         "solver = covariance takes a state");
  }
  bool is_exact = false;
  return fit_state<T>(state, options, is_exact);
}

Index components_for_share(TensorView<const double> ratios, double share) {
  if (!(share > 0 && share <= 1)) {
    throw_argument_error("pca: the share is " + number(share) +
                         ", but a share of the variance is above 0 and at most 1");
  }
  double sum = 0;
  for (Index i = 0; i < ratios.count(); ++i) {
    sum += ratios(i);
    if (sum >= share * (1 - 1e-12)) return i + 1;
  }
  throw_argument_error("pca: the share is " + number(share) + ", but " +
                           std::to_string(ratios.count()) + " components hold " + number(sum),
                       "fit more components");
}

#define ECKART_INSTANTIATE(T)                                  \
  template Pca<T> pca(TensorView<const T>, const PcaOptions&); \
  template Pca<T> pca(const PcaState&, const PcaOptions&);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
#undef ECKART_INSTANTIATE

}  // namespace eckart
