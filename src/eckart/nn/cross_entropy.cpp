#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/reduce.h"
#include "eckart/linalg/sums_simd.h"
#include "eckart/nn/activations_simd.h"
#include "eckart/nn/loss.h"
#include "eckart/nn/rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

void check_targets(std::string_view operation, const Shape& logits,
                   const std::vector<Index>& targets, const CrossEntropyOptions& options) {
  const std::string start = std::string(operation) + ": logits is " + to_string(logits);
  if (logits.rank() == 0) {
    throw_shape_error(start + ", but its last axis must be the classes");
  }
  const Index n_classes = logits.size(-1);
  Index n_rows = 1;
  for (Index axis = 0; axis + 1 < logits.rank(); ++axis) n_rows *= logits.size(axis);
  if (static_cast<Index>(targets.size()) != n_rows) {
    throw_shape_error(
        start + " and targets has " + counted(static_cast<Index>(targets.size()), "element") +
        ", but there must be one for each of the " + counted(n_rows, "vector") + " of logits");
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Index target = targets[i];
    if (target == options.ignore_index || (target >= 0 && target < n_classes)) continue;
    throw_argument_error(std::string(operation) + ": target " + std::to_string(target) +
                         " at place " + std::to_string(i) + ", but logits is " + to_string(logits) +
                         " and targets are 0 to " + std::to_string(n_classes - 1) +
                         " or ignore_index, " + std::to_string(options.ignore_index));
  }
  if (options.label_smoothing >= 0 && options.label_smoothing <= 1) return;
  throw_argument_error(std::string(operation) + ": label_smoothing is " +
                       number_text(options.label_smoothing) + ", but it must be 0 to 1");
}

// log of the sum of exponentials as `highest` + `log_sum`, so that the highest can cancel exactly.
struct LogSumExp {
  double highest = 0;
  double log_sum = 0;
};

template <class T>
LogSumExp log_sum_exp(const T* x, Index n) {
  T highest = -std::numeric_limits<T>::infinity();
  for (Index i = 0; i < n; ++i) highest = x[i] > highest ? x[i] : highest;
  const double shift = static_cast<double>(highest);
  return {shift, std::log(detail::exp_sum_run(x, static_cast<std::size_t>(n), shift))};
}

template <class T>
double loss_of(const T* x, Index n, Index target, double smoothing) {
  const LogSumExp total = log_sum_exp(x, n);
  const auto loss_at = [&](double logit) { return (total.highest - logit) + total.log_sum; };
  const double own = loss_at(static_cast<double>(x[target]));
  if (smoothing == 0) return own;  // a -infinity elsewhere is no loss
  const double mean = detail::sum_run(x, static_cast<std::size_t>(n)) / static_cast<double>(n);
  return (1 - smoothing) * own + smoothing * loss_at(mean);
}

Index counting_targets(const std::vector<Index>& targets, Index ignored) {
  return static_cast<Index>(targets.size()) -
         static_cast<Index>(std::count(targets.begin(), targets.end(), ignored));
}

}  // namespace

template <class T>
Tensor<T> cross_entropy(TensorView<const T> logits, const std::vector<Index>& targets,
                        const CrossEntropyOptions& options) {
  check_targets("cross_entropy", logits.shape(), targets, options);
  std::vector<double> losses(targets.size(), 0.0);
  detail::for_rows(logits, [&](Index row, const T* x) {
    const std::size_t i = static_cast<std::size_t>(row);
    if (targets[i] == options.ignore_index) return;
    losses[i] = loss_of(x, logits.size(-1), targets[i], options.label_smoothing);
  });
  if (options.reduction == Reduction::none) {
    std::vector<Index> sizes = logits.shape().sizes();
    std::vector<std::string> names;
    sizes.pop_back();
    for (Index axis = 0; axis + 1 < logits.rank(); ++axis)
      names.push_back(logits.shape().name(axis));
    Tensor<T> result =
        Tensor<T>::uninitialized(shape_with_names(std::move(sizes), std::move(names)));
    std::transform(losses.begin(), losses.end(), result.data(),
                   [](double loss) { return static_cast<T>(loss); });
    return result;
  }
  const TensorView<const double> all(losses.data(), {static_cast<Index>(losses.size())});
  double loss = *sum(all).data();
  if (options.reduction == Reduction::mean) {
    loss /= static_cast<double>(counting_targets(targets, options.ignore_index));
  }
  return Tensor<T>(Shape{}, static_cast<T>(loss));
}

template <class T>
Tensor<T> cross_entropy_backward(TensorView<const T> logits, const std::vector<Index>& targets,
                                 const CrossEntropyOptions& options) {
  check_targets("cross_entropy_backward", logits.shape(), targets, options);
  Tensor<T> result(logits.shape());
  const Index n = logits.size(-1);
  const double divisor = options.reduction == Reduction::mean
                             ? static_cast<double>(counting_targets(targets, options.ignore_index))
                             : 1.0;
  const double smoothing = options.label_smoothing;
  detail::for_rows(logits, [&](Index row, const T* x) {
    const Index target = targets[static_cast<std::size_t>(row)];
    if (target == options.ignore_index) return;
    const LogSumExp total = log_sum_exp(x, n);
    T* const out = result.data() + row * n;
    for (Index i = 0; i < n; ++i) {
      const double weight = std::exp((static_cast<double>(x[i]) - total.highest) - total.log_sum);
      const double wanted =
          (i == target ? 1 - smoothing : 0.0) + smoothing / static_cast<double>(n);
      out[i] = static_cast<T>((weight - wanted) / divisor);
    }
  });
  return result;
}

template Tensor<float> cross_entropy(TensorView<const float>, const std::vector<Index>&,
                                     const CrossEntropyOptions&);
template Tensor<double> cross_entropy(TensorView<const double>, const std::vector<Index>&,
                                      const CrossEntropyOptions&);
template Tensor<float> cross_entropy_backward(TensorView<const float>, const std::vector<Index>&,
                                              const CrossEntropyOptions&);
template Tensor<double> cross_entropy_backward(TensorView<const double>, const std::vector<Index>&,
                                               const CrossEntropyOptions&);

}  // namespace eckart
