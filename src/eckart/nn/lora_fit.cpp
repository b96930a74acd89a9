#include "eckart/nn/lora_fit.h"

#include "eckart/core/errors.h"
#include "eckart/core/random.h"
#include "eckart/linalg/elementwise.h"
#include "eckart/linalg/finite.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/norms.h"
#include "eckart/nn/linear_backward.h"
#include "eckart/nn/table_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

namespace eckart {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& rule) {
  throw_argument_error("lora_fit: " + what + ", but " + rule);
}

void check_options(const LoraFitOptions& options, Index n_rows) {
  const auto check_positive = [](const std::string& name, double value) {
    if (value > 0 && std::isfinite(value)) return;
    refuse(name + " is " + number_text(value), "it must be above 0 and finite");
  };
  if (options.rank < 1) refuse("rank is " + std::to_string(options.rank), "it must be at least 1");
  if (options.steps < 1) {
    refuse("steps is " + std::to_string(options.steps), "it must be at least 1");
  }
  check_positive("alpha", options.alpha);
  check_positive("learning_rate", options.learning_rate);
  if (!(options.tolerance >= 0)) {
    refuse("tolerance is " + number_text(options.tolerance), "it must be at least 0");
  }
  if (n_rows < 1) refuse("x has no rows", "it must have at least one to learn from");
  if (options.batch < 0 || options.batch > n_rows) {
    refuse("batch is " + std::to_string(options.batch) + " and x has " + counted(n_rows, "row"),
           "batch must be 1 to that, or 0 for all");
  }
}

template <class T>
void check_data(TensorView<const T> x, TensorView<const T> y, TensorView<const T> w) {
  const auto names_differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  check_matrix("lora_fit", "w", w.shape());
  bool fits = x.rank() > 0 && x.rank() == y.rank() && x.size(-1) == w.size(0) &&
              y.size(-1) == w.size(1) && !names_differ(x.shape().name(-1), w.shape().name(0)) &&
              !names_differ(y.shape().name(-1), w.shape().name(1));
  for (Index axis = 0; fits && axis + 1 < x.rank(); ++axis) fits = x.size(axis) == y.size(axis);
  if (!fits) {
    throw_shape_error("lora_fit: x is " + to_string(x.shape()) + ", y is " + to_string(y.shape()) +
                      " and w is " + to_string(w.shape()) +
                      ", but x must be rows by w's rows, y as many rows by w's columns");
  }
  check_finite("lora_fit", "x", x);
  check_finite("lora_fit", "y", y);
  check_finite("lora_fit", "w", w);
}

// All leading axes as one, without names, in row-major order.
template <class T>
Tensor<T> as_rows(TensorView<const T> view) {
  const Index n = view.size(-1);
  Index rows = 1;
  for (Index axis = 0; axis + 1 < view.rank(); ++axis) rows *= view.size(axis);
  const TensorView<const T> bare(view.data(), view.shape().without_names(), view.strides());
  return Tensor<T>(bare).reshaped({rows, n});
}

// One factor in double, with Adam's running means of its gradient and of the gradient's square.
class Parameter {
 public:
  explicit Parameter(Tensor<double> value)
      : value_(std::move(value)), first_(value_.shape()), second_(value_.shape()) {}

  template <class T>
  Tensor<T> rounded() const {
    Tensor<T> result = Tensor<T>::uninitialized(value_.shape());
    std::transform(value_.data(), value_.data() + value_.count(), result.data(),
                   [](double element) { return static_cast<T>(element); });
    return result;
  }

  template <class T>
  void step(const Tensor<T>& gradient, Index number, double learning_rate) {
    constexpr double beta_first = 0.9;
    constexpr double beta_second = 0.999;
    constexpr double eps = 1e-8;  // keeps a gradient of 0 from dividing by 0
    const double n = static_cast<double>(number);
    const double first_share = 1 - std::pow(beta_first, n);
    const double second_share = 1 - std::pow(beta_second, n);
    for (Index i = 0; i < value_.count(); ++i) {
      const double g = static_cast<double>(gradient.data()[i]);
      double& first = first_.data()[i];
      double& second = second_.data()[i];
      first = beta_first * first + (1 - beta_first) * g;
      second = beta_second * second + (1 - beta_second) * g * g;
      value_.data()[i] -=
          learning_rate * (first / first_share) / (std::sqrt(second / second_share) + eps);
    }
  }

 private:
  Tensor<double> value_;
  Tensor<double> first_;
  Tensor<double> second_;
};

// What the factors are to give, and how far they are from it.
template <class T>
struct Data {
  TensorView<const T> x;       // row x d_in
  TensorView<const T> target;  // row x d_out: y - x w
};

template <class T>
struct Evaluation {
  double loss = 0;
  LoraGradients<T> gradients;
  double gradient_norm = 0;
};

template <class T>
Evaluation<T> evaluate(const Data<T>& data, const LoraFactors<T>& factors) {
  const Tensor<T> narrow = multiply(matmul(data.x, factors.lora_a), factors.scale);
  const Tensor<T> difference = subtract(matmul(narrow, factors.lora_b), data.target);
  const double length = norm(difference);
  const double count = static_cast<double>(std::max<Index>(difference.count(), 1));
  Evaluation<T> result;
  result.loss = length * length / count;
  result.gradients = lora_backward(multiply(difference, 2 / count), data.x, factors);
  result.gradient_norm = std::hypot(norm(result.gradients.lora_a), norm(result.gradients.lora_b));
  return result;
}

// Which rows each step learns from: all in their order, or batches of an order drawn anew whenever
// all have been used.
class Batches {
 public:
  Batches(Index n_rows, const LoraFitOptions& options)
      : random_(options.seed, 1), rows_(static_cast<std::size_t>(n_rows)), batch_(options.batch) {
    std::iota(rows_.begin(), rows_.end(), Index{0});
  }

  bool are_whole() const { return batch_ == 0 || batch_ == static_cast<Index>(rows_.size()); }
  std::vector<Index> next() {
    if (at_ == 0) shuffle();
    const std::size_t end = std::min(at_ + static_cast<std::size_t>(batch_), rows_.size());
    const auto begin = rows_.begin();
    std::vector<Index> result(begin + static_cast<std::ptrdiff_t>(at_),
                              begin + static_cast<std::ptrdiff_t>(end));
    at_ = end == rows_.size() ? 0 : end;
    return result;
  }

 private:
  void shuffle() {
    for (std::size_t i = rows_.size(); i > 1; --i) {
      std::swap(rows_[i - 1], rows_[random_.below(drawn_++, i)]);
    }
  }

  RandomStream random_;
  std::vector<Index> rows_;
  Index batch_;
  std::size_t at_ = 0;
  std::uint64_t drawn_ = 0;
};

template <class T>
Tensor<T> taken(TensorView<const T> table, const std::vector<Index>& rows) {
  const Index n = static_cast<Index>(rows.size());
  Tensor<T> result = Tensor<T>::uninitialized({n, table.size(1)});
  detail::copy_rows({"lora_fit", "row"}, table, rows.data(), n, result.data());
  return result;
}

Tensor<double> start_of_a(Index d_in, const LoraFitOptions& options) {
  Tensor<double> a = Tensor<double>::uninitialized({d_in, options.rank});
  const RandomStream random(options.seed);
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<Index>(d_in, 1)));
  for (Index i = 0; i < a.count(); ++i) {
    a.data()[i] = bound * (2 * random.uniform(static_cast<std::uint64_t>(i)) - 1);
  }
  return a;
}

// Half a cosine from the first step's rate down to nearly 0 at the last.
double rate_of_step(Index step, const LoraFitOptions& options) {
  constexpr double pi = 3.141592653589793;
  const double done = static_cast<double>(step) / static_cast<double>(options.steps);
  return options.learning_rate * 0.5 * (1 + std::cos(pi * done));
}

template <class T>
class Training {
 public:
  Training(const Data<T>& all, const LoraFitOptions& options)
      : all_(all),
        options_(options),
        a_(start_of_a(all.x.size(1), options)),
        b_(Tensor<double>({options.rank, all.target.size(1)})),
        batches_(all.x.size(0), options) {
    fit_.scale = options.alpha / static_cast<double>(options.rank);
    round();
    first_norm_ = evaluate(all_, factors()).gradient_norm;
  }

  LoraFit<T> run() {
    for (Index step = 0; step < options_.steps; ++step) {
      const Evaluation<T> now = evaluate_step();
      if (!std::isfinite(now.loss) || !std::isfinite(now.gradient_norm)) break;
      fit_.losses.push_back(now.loss);
      if (batches_.are_whole() && has_converged(now.gradient_norm)) break;
      before_a_ = fit_.lora_a;
      before_b_ = fit_.lora_b;
      const double rate = rate_of_step(step, options_);
      a_.step(now.gradients.lora_a, step + 1, rate);
      b_.step(now.gradients.lora_b, step + 1, rate);
      round();
    }
    Evaluation<T> end = evaluate(all_, factors());
    if (!std::isfinite(end.loss) || !std::isfinite(end.gradient_norm)) {
      take_back();
      end = evaluate(all_, factors());
    }
    fit_.loss = end.loss;
    fit_.gradient_share = first_norm_ == 0 ? 0 : end.gradient_norm / first_norm_;
    fit_.converged = has_converged(end.gradient_norm);
    return std::move(fit_);
  }

 private:
  LoraFactors<T> factors() const { return {fit_.lora_a, fit_.lora_b, fit_.scale}; }
  bool has_converged(double gradient_norm) const {
    return std::isfinite(first_norm_) && gradient_norm <= options_.tolerance * first_norm_;
  }
  void round() {
    fit_.lora_a = a_.template rounded<T>();
    fit_.lora_b = b_.template rounded<T>();
  }
  void take_back() {
    if (before_a_.count() == 0 && before_b_.count() == 0) return;
    fit_.lora_a = before_a_;
    fit_.lora_b = before_b_;
  }
  Evaluation<T> evaluate_step() {
    if (batches_.are_whole()) return evaluate(all_, factors());
    const std::vector<Index> rows = batches_.next();
    const Tensor<T> x = taken(all_.x, rows);
    const Tensor<T> target = taken(all_.target, rows);
    return evaluate(Data<T>{x, target}, factors());
  }

  Data<T> all_;
  const LoraFitOptions& options_;
  Parameter a_;
  Parameter b_;
  Batches batches_;
  LoraFit<T> fit_;
  Tensor<T> before_a_;
  Tensor<T> before_b_;
  double first_norm_ = 0;
};

}  // namespace

template <class T>
LoraFit<T> lora_fit(TensorView<const T> x, TensorView<const T> y, TensorView<const T> w,
                    const LoraFitOptions& options) {
  check_data(x, y, w);
  const Tensor<T> rows = as_rows(x);
  check_options(options, rows.size(0));
  const TensorView<const T> bare_w(w.data(), w.shape().without_names(), w.strides());
  // The loss against y of what is added to x w is that against what x w lacks.
  const Tensor<T> target = subtract(as_rows(y), matmul(rows.view(), bare_w));
  LoraFit<T> fit = Training<T>(Data<T>{rows, target}, options).run();
  if (w.shape().has_names()) {
    fit.lora_a = std::move(fit.lora_a).named({w.shape().name(0), "rank"});
    fit.lora_b = std::move(fit.lora_b).named({"rank", w.shape().name(1)});
  }
  return fit;
}

template LoraFit<float> lora_fit(TensorView<const float>, TensorView<const float>,
                                 TensorView<const float>, const LoraFitOptions&);
template LoraFit<double> lora_fit(TensorView<const double>, TensorView<const double>,
                                  TensorView<const double>, const LoraFitOptions&);

}  // namespace eckart
