#include "eckart/linalg/reduce.h"

#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/reduce_plan.h"
#include "eckart/linalg/sums_simd.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>

namespace eckart {
namespace {

// A sum that keeps what each addition loses (Knuth's two-sum).
class CarryingSum {
 public:
  void add(double x) {
    const double sum = sum_ + x;
    const double added = sum - sum_;
    lost_ += (sum_ - (sum - added)) + (x - added);
    sum_ = sum;
  }
  void merge(const CarryingSum& other) {
    add(other.sum_);
    lost_ += other.lost_;
  }
  // Beyond infinity nothing is lost that can be computed.
  double value() const { return std::isfinite(lost_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

template <class T>
struct Total {
  CarryingSum sum;

  void add(T x, Index) { sum.add(static_cast<double>(x)); }
  void add_block(const T* x, std::size_t n, Index) { sum.add(detail::sum_run(x, n)); }
  void merge(const Total& other) { sum.merge(other.sum); }
};

template <class T>
struct SquaredDifferences {
  double mean = 0;
  CarryingSum sum = {};

  void add(T x, Index) {
    const double difference = static_cast<double>(x) - mean;
    sum.add(difference * difference);
  }
  void add_block(const T* x, std::size_t n, Index) {
    double differences[detail::block_elements];
    for (std::size_t i = 0; i < n; ++i) differences[i] = static_cast<double>(x[i]) - mean;
    sum.add(detail::sum_squares_run(differences, n, 1));
  }
  void merge(const SquaredDifferences& other) { sum.merge(other.sum); }
};

template <class T, bool largest>
struct Extreme {
  T value = 0;
  Index at = -1;

  void add(T x, Index term) {
    const bool is_beyond = largest ? x > value : x < value;
    if (at >= 0 && !is_beyond && (!std::isnan(x) || std::isnan(value))) return;
    value = x;
    at = term;
  }
  void add_block(const T* x, std::size_t n, Index term) {
    for (std::size_t i = 0; i < n; ++i) add(x[i], term + static_cast<Index>(i));
  }
  void merge(const Extreme& other) {
    if (other.at >= 0) add(other.value, other.at);
  }
};

template <class T>
detail::ReducePlan plan_of(std::string_view operation, TensorView<const T> x,
                           const ReduceOptions& options, bool needs_terms) {
  detail::ReducePlan plan =
      detail::plan_reduction(operation, x.shape(), x.strides(), options.axes, options.keep_axes);
  if (needs_terms && plan.reduced.count == 0 && plan.kept.count > 0) {
    throw_argument_error(std::string(operation) + ": x is " + to_string(x.shape()) +
                         ", but there must be at least one element to reduce");
  }
  return plan;
}

// The sums divided by `divisor`.
template <class T>
Tensor<T> totals(const detail::ReducePlan& plan, TensorView<const T> x, double divisor) {
  Tensor<T> result = Tensor<T>::uninitialized(plan.result);
  detail::reduce(
      plan, x, [](Index) { return Total<T>{}; },
      [&](Index output, const Total<T>& total) {
        result.data()[output] = static_cast<T>(total.sum.value() / divisor);
      });
  return result;
}

template <bool largest, class T>
Tensor<T> extremes(std::string_view operation, TensorView<const T> x,
                   const ReduceOptions& options) {
  const detail::ReducePlan plan = plan_of(operation, x, options, true);
  Tensor<T> result = Tensor<T>::uninitialized(plan.result);
  detail::reduce(
      plan, x, [](Index) { return Extreme<T, largest>{}; },
      [&](Index output, const auto& extreme) { result.data()[output] = extreme.value; });
  return result;
}

template <bool largest, class T>
Tensor<Index> extreme_positions(std::string_view operation, TensorView<const T> x,
                                const ReduceOptions& options) {
  const detail::ReducePlan plan = plan_of(operation, x, options, true);
  Tensor<Index> result = Tensor<Index>::uninitialized(plan.result);
  detail::reduce(
      plan, x, [](Index) { return Extreme<T, largest>{}; },
      [&](Index output, const auto& extreme) { result.data()[output] = extreme.at; });
  return result;
}

// The variances, each through `finish`.
template <class T, class Finish>
Tensor<T> variances(std::string_view operation, TensorView<const T> x,
                    const VarianceOptions& options, const Finish& finish) {
  const detail::ReducePlan plan =
      plan_of(operation, x, {.axes = options.axes, .keep_axes = options.keep_axes}, true);
  const Index divisor = plan.reduced.count - options.correction;
  if (divisor <= 0 && plan.kept.count > 0) {
    throw_argument_error(std::string(operation) + ": " + counted(plan.reduced.count, "element") +
                         " less a correction of " + std::to_string(options.correction) + " is " +
                         std::to_string(divisor) + ", but it divides and must be above 0");
  }
  // In double: rounded to float a large mean would be off by more than the deviation.
  std::vector<double> means(static_cast<std::size_t>(plan.kept.count));
  detail::reduce(
      plan, x, [](Index) { return Total<T>{}; },
      [&](Index output, const Total<T>& total) {
        means[static_cast<std::size_t>(output)] =
            total.sum.value() / static_cast<double>(plan.reduced.count);
      });
  Tensor<T> result = Tensor<T>::uninitialized(plan.result);
  detail::reduce(
      plan, x,
      [&](Index output) {
        return SquaredDifferences<T>{.mean = means[static_cast<std::size_t>(output)]};
      },
      [&](Index output, const SquaredDifferences<T>& squares) {
        result.data()[output] =
            static_cast<T>(finish(squares.sum.value() / static_cast<double>(divisor)));
      });
  return result;
}

}  // namespace

template <class T>
Tensor<T> sum(TensorView<const T> x, const ReduceOptions& options) {
  return totals(plan_of("sum", x, options, false), x, 1);
}

template <class T>
Tensor<T> mean(TensorView<const T> x, const ReduceOptions& options) {
  const detail::ReducePlan plan = plan_of("mean", x, options, true);
  return totals(plan, x, static_cast<double>(plan.reduced.count));
}

template <class T>
Tensor<T> min(TensorView<const T> x, const ReduceOptions& options) {
  return extremes<false>("min", x, options);
}

template <class T>
Tensor<T> max(TensorView<const T> x, const ReduceOptions& options) {
  return extremes<true>("max", x, options);
}

template <class T>
Tensor<T> variance(TensorView<const T> x, const VarianceOptions& options) {
  return variances("variance", x, options, [](double variance) { return variance; });
}

template <class T>
Tensor<T> standard_deviation(TensorView<const T> x, const VarianceOptions& options) {
  return variances("standard_deviation", x, options,
                   [](double variance) { return std::sqrt(variance); });
}

template <class T>
Tensor<Index> argmax(TensorView<const T> x, const ReduceOptions& options) {
  return extreme_positions<true>("argmax", x, options);
}

template <class T>
Tensor<Index> argmin(TensorView<const T> x, const ReduceOptions& options) {
  return extreme_positions<false>("argmin", x, options);
}

template Tensor<float> sum(TensorView<const float>, const ReduceOptions&);
template Tensor<double> sum(TensorView<const double>, const ReduceOptions&);
template Tensor<float> mean(TensorView<const float>, const ReduceOptions&);
template Tensor<double> mean(TensorView<const double>, const ReduceOptions&);
template Tensor<float> min(TensorView<const float>, const ReduceOptions&);
template Tensor<double> min(TensorView<const double>, const ReduceOptions&);
template Tensor<float> max(TensorView<const float>, const ReduceOptions&);
template Tensor<double> max(TensorView<const double>, const ReduceOptions&);
template Tensor<float> variance(TensorView<const float>, const VarianceOptions&);
template Tensor<double> variance(TensorView<const double>, const VarianceOptions&);
template Tensor<float> standard_deviation(TensorView<const float>, const VarianceOptions&);
template Tensor<double> standard_deviation(TensorView<const double>, const VarianceOptions&);
template Tensor<Index> argmax(TensorView<const float>, const ReduceOptions&);
template Tensor<Index> argmax(TensorView<const double>, const ReduceOptions&);
template Tensor<Index> argmin(TensorView<const float>, const ReduceOptions&);
template Tensor<Index> argmin(TensorView<const double>, const ReduceOptions&);

}  // namespace eckart
