#include "eckart/nn/residual_stream.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/linalg/sums_simd.h"
#include "eckart/nn/normalization_checks.h"
#include "eckart/nn/rows.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

constexpr const char* operation = "residual_stream";

bool names_differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

template <class T>
void check_parameters(const AttributionOptions<T>& options) {
  const auto refuse = [](const std::string& what) {
    throw_argument_error(std::string(operation) + ": " + what);
  };
  if (options.norm == StreamNorm::none && (options.weight || options.bias)) {
    refuse("there is a weight or a bias and no norm, but they are the norm's");
  }
  if (options.norm == StreamNorm::rms_norm && options.bias) {
    refuse("there is a bias and the norm is rms_norm, but it has none");
  }
  if (options.adds_one && (options.norm != StreamNorm::rms_norm || !options.weight)) {
    refuse("adds_one is set, but only rms_norm with a weight adds 1 to it");
  }
}

// The direction as it acts on what the norm divides by its deviation: weight times direction, less
// its mean where the norm subtracts the mean of what it is given.
template <class T>
std::vector<double> seen_direction(const T* direction, Index n, const T* weight,
                                   const AttributionOptions<T>& options) {
  std::vector<double> seen(static_cast<std::size_t>(n));
  double mean = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    seen[i] = static_cast<double>(direction[i]);
    if (weight != nullptr) {
      seen[i] *= static_cast<double>(weight[i]) + (options.adds_one ? 1.0 : 0.0);
    }
    mean += seen[i];
  }
  if (options.norm == StreamNorm::layer_norm && n > 0) {
    mean /= static_cast<double>(n);
    for (double& element : seen) element -= mean;
  }
  return seen;
}

template <class T>
double dot_of(const T* x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(x[i]) * y[i];
  return sum;
}

// What a token's contributions are multiplied by.
template <class T>
double factor_of(const T* x, Index n, const AttributionOptions<T>& options) {
  if (options.norm == StreamNorm::none) return 1;
  const detail::Deviation deviation = options.norm == StreamNorm::layer_norm
                                          ? detail::layer_deviation(x, n, options.eps)
                                          : detail::rms_deviation(x, n, options.eps);
  return deviation.inverse * deviation.scale;
}

}  // namespace

template <class T>
ResidualStream<T>::ResidualStream(std::string name, TensorView<const T> start) {
  check_matrix(operation, name, start.shape());
  value_ = Tensor<T>(start);
  names_.push_back(std::move(name));
  contributions_.emplace_back(start);
}

template <class T>
void ResidualStream<T>::add(std::string name, TensorView<const T> contribution) {
  const Shape& shape = contribution.shape();
  const Shape& own = value_.shape();
  bool fits = same_sizes(shape, own);
  for (Index axis = 0; fits && axis < 2; ++axis) {
    fits = !names_differ(shape.name(axis), own.name(axis));
  }
  if (!fits) {
    throw_shape_error(std::string(operation) + ": " + name + " is " + to_string(shape) +
                      " and the stream is " + to_string(own) +
                      ", but both must have the same sizes and names");
  }
  if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
    throw_argument_error(std::string(operation) + ": " + name +
                         " has been added before, but every contribution needs its own name");
  }
  contributions_.emplace_back(contribution);
  names_.push_back(std::move(name));
  const Tensor<T>& added = contributions_.back();
  parallel_for(value_.count(), detail::piece_elements, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) value_.data()[i] += added.data()[i];
  });
}

template <class T>
const Tensor<T>& ResidualStream<T>::contribution(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) {
    std::string known;
    for (const std::string& one : names_) known += (known.empty() ? "" : ", ") + one;
    throw_argument_error(std::string(operation) + ": there is no contribution " + name +
                         ", but only " + known);
  }
  return contributions_[static_cast<std::size_t>(found - names_.begin())];
}

template <class T>
Tensor<double> ResidualStream<T>::shares() const {
  const Index n_tokens = value_.size(0);
  const Index d = value_.size(1);
  const std::size_t count = static_cast<std::size_t>(d);
  const Index n = static_cast<Index>(names_.size());
  Tensor<double> result({n, n_tokens});
  parallel_for(n_tokens, detail::rows_at_once(d * n), [&](Index begin, Index end) {
    for (Index token = begin; token < end; ++token) {
      const T* const x = value_.data() + token * d;
      const double length = detail::dot_run(x, x, count);
      for (Index i = 0; i < n; ++i) {
        const T* const c = contributions_[static_cast<std::size_t>(i)].data() + token * d;
        result(i, token) = detail::dot_run(c, x, count) / length;
      }
    }
  });
  return std::move(result).named({"contribution", "token"});
}

template <class T>
StreamAttribution ResidualStream<T>::attributions(TensorView<const T> direction,
                                                  const AttributionOptions<T>& options) const {
  check_parameters(options);
  detail::check_normalized(operation, value_.shape(), options.eps);
  const detail::AlongLastAxis<T> along(operation, "direction", value_.shape(), direction);
  const detail::AlongLastAxis<T> weight(operation, "weight", value_.shape(), options.weight);
  const detail::AlongLastAxis<T> bias(operation, "bias", value_.shape(), options.bias);
  const Index n_tokens = value_.size(0);
  const Index d = value_.size(1);
  const Index n = static_cast<Index>(names_.size());
  const std::vector<double> seen = seen_direction(along.data(), d, weight.data(), options);
  StreamAttribution result{Tensor<double>(Shape({n, n_tokens}, {"contribution", "token"})), 0,
                           Tensor<double>(Shape({n_tokens}, {"token"}))};
  if (bias.data() != nullptr) {
    for (Index i = 0; i < d; ++i) {
      result.bias += static_cast<double>(bias.data()[i]) * static_cast<double>(along.data()[i]);
    }
  }
  parallel_for(n_tokens, detail::rows_at_once(d * n), [&](Index begin, Index end) {
    for (Index token = begin; token < end; ++token) {
      const T* const x = value_.data() + token * d;
      const double factor = factor_of(x, d, options);
      for (Index i = 0; i < n; ++i) {
        const T* const c = contributions_[static_cast<std::size_t>(i)].data() + token * d;
        result.contributions(i, token) = factor * dot_of(c, seen);
      }
      result.total(token) = factor * dot_of(x, seen) + result.bias;
    }
  });
  return result;
}

template class ResidualStream<float>;
template class ResidualStream<double>;

}  // namespace eckart
