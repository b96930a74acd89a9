#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matmul.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/mlp.h"
#include "eckart/nn/rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

template <class T>
void check_experts(TensorView<const T> x, TensorView<const T> w_router,
                   const std::vector<Mlp<T>>& experts, const ExpertsOptions& options) {
  const Index n_experts = static_cast<Index>(experts.size());
  if (x.rank() == 0) {
    throw_shape_error("mixture_of_experts: x is a scalar, but its last axis must be d_model");
  }
  check_matrix("mixture_of_experts", "w_router", w_router.shape());
  if (w_router.size(1) != n_experts) {
    throw_shape_error("mixture_of_experts: w_router is " + to_string(w_router.shape()) +
                          " and there are " + counted(n_experts, "expert") +
                          ", but w_router must have a column for each",
                      w_router.size(0) == n_experts ? "with w_router transposed it fits" : "");
  }
  if (options.n_active < 1 || options.n_active > n_experts) {
    throw_argument_error("mixture_of_experts: n_active is " + std::to_string(options.n_active) +
                         " and there are " + counted(n_experts, "expert") +
                         ", but n_active must be 1 to that");
  }
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const Shape& down = experts[i].w_down.shape();
    if (down.rank() == 2 && down.size(1) == x.size(-1)) continue;
    throw_shape_error("mixture_of_experts: x is " + to_string(x.shape()) + " and expert " +
                      std::to_string(i) + "'s w_down is " + to_string(down) +
                      ", but w_down's columns must be x's");
  }
}

// The experts of one row, best first, and their weights. NaN is below every score.
template <class T>
void choose(const T* scores, Index n, const ExpertsOptions& options, Index* chosen, T* weights) {
  std::vector<bool> is_taken(static_cast<std::size_t>(n), false);
  for (Index k = 0; k < options.n_active; ++k) {
    Index best = -1;
    for (Index i = 0; i < n; ++i) {
      if (is_taken[static_cast<std::size_t>(i)]) continue;
      if (best < 0 || scores[i] > scores[best] ||
          (std::isnan(scores[best]) && !std::isnan(scores[i]))) {
        best = i;
      }
    }
    is_taken[static_cast<std::size_t>(best)] = true;
    chosen[k] = best;
  }
  const double highest = static_cast<double>(scores[chosen[0]]);
  const auto exp_of = [&](Index i) { return std::exp(static_cast<double>(scores[i]) - highest); };
  double of_chosen = 0;
  for (Index k = 0; k < options.n_active; ++k) of_chosen += exp_of(chosen[k]);
  double divisor = of_chosen;
  if (options.softmax == RouterSoftmax::before_choice && !options.normalizes) {
    divisor = 0;
    for (Index i = 0; i < n; ++i) divisor += exp_of(i);
  }
  for (Index k = 0; k < options.n_active; ++k) {
    weights[k] = static_cast<T>(exp_of(chosen[k]) / divisor);
  }
}

// The rows that go to one expert, and where in `chosen` they do.
using Visits = std::vector<Index>;

template <class T>
void add_expert(TensorView<const T> rows, const Mlp<T>& expert, const Visits& visits,
                Index n_active, MixtureOfExperts<T>& mixture) {
  const Index d = rows.size(1);
  const Index n = static_cast<Index>(visits.size());
  Tensor<T> taken = Tensor<T>::uninitialized(shape_with_names({n, d}, {"", rows.shape().name(1)}));
  const auto for_visits = [&](const auto& body) {
    parallel_for(n, detail::rows_at_once(d), [&](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) body(i, visits[static_cast<std::size_t>(i)]);
    });
  };
  for_visits([&](Index i, Index visit) {
    const T* const from = rows.data() + visit / n_active * d;
    std::copy(from, from + d, taken.data() + i * d);
  });
  const Tensor<T> output = mlp(taken, expert);
  for_visits([&](Index i, Index visit) {
    const T weight = mixture.weights.data()[visit];
    const T* const from = output.data() + i * d;
    T* const to = mixture.output.data() + visit / n_active * d;
    for (Index k = 0; k < d; ++k) to[k] += weight * from[k];
  });
}

// The shape of x with n_active in place of its last axis.
template <class T>
Shape choice_shape(TensorView<const T> x, Index n_active) {
  std::vector<Index> sizes = x.shape().sizes();
  std::vector<std::string> names;
  for (Index axis = 0; axis < x.rank(); ++axis) names.push_back(x.shape().name(axis));
  sizes.back() = n_active;
  names.back().clear();
  return shape_with_names(std::move(sizes), std::move(names));
}

}  // namespace

template <class T>
MixtureOfExperts<T> mixture_of_experts(TensorView<const T> x, TensorView<const T> w_router,
                                       const std::vector<Mlp<T>>& experts,
                                       const ExpertsOptions& options) {
  check_experts(x, w_router, experts, options);
  const Index n_active = options.n_active;
  const Index n_experts = static_cast<Index>(experts.size());
  const Index d = x.size(-1);
  const Tensor<T> scores =
      matmul(x, w_router, {.operation = "mixture_of_experts", .left = "x", .right = "w_router"});
  const Shape choice = choice_shape(x, n_active);
  MixtureOfExperts<T> mixture{Tensor<T>(x.shape()), Tensor<Index>::uninitialized(choice),
                              Tensor<T>::uninitialized(choice)};
  const Index n_rows = choice.count() / n_active;
  parallel_for(n_rows, detail::rows_at_once(n_experts * n_active), [&](Index begin, Index end) {
    for (Index row = begin; row < end; ++row) {
      choose(scores.data() + row * n_experts, n_experts, options,
             mixture.chosen.data() + row * n_active, mixture.weights.data() + row * n_active);
    }
  });
  std::vector<Visits> visits(experts.size());
  for (Index i = 0; i < mixture.chosen.count(); ++i) {
    visits[static_cast<std::size_t>(mixture.chosen.data()[i])].push_back(i);
  }
  std::optional<Tensor<T>> copy;
  if (!x.is_row_major()) copy.emplace(x);
  const TensorView<const T> rows(copy ? copy->data() : x.data(),
                                 shape_with_names({n_rows, d}, {"", x.shape().name(-1)}));
  for (std::size_t i = 0; i < experts.size(); ++i) {
    if (!visits[i].empty()) add_expert(rows, experts[i], visits[i], n_active, mixture);
  }
  return mixture;
}

template MixtureOfExperts<float> mixture_of_experts(TensorView<const float>,
                                                    TensorView<const float>,
                                                    const std::vector<Mlp<float>>&,
                                                    const ExpertsOptions&);
template MixtureOfExperts<double> mixture_of_experts(TensorView<const double>,
                                                     TensorView<const double>,
                                                     const std::vector<Mlp<double>>&,
                                                     const ExpertsOptions&);

}  // namespace eckart
