#include "eckart/model/sampling.h"

#include "eckart/core/errors.h"
#include "eckart/core/random.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>

#include <fmt/format.h>

namespace eckart {
namespace {

void check_logits(TensorView<const float> logits) {
  if (logits.rank() != 1) {
    throw_shape_error("sample: the logits are " + to_string(logits.shape()) +
                      ", but must be a vector, one for each token of the vocabulary");
  }
  if (logits.count() == 0) throw_argument_error("sample: there are no logits to sample from");
  for (Index i = 0; i < logits.count(); ++i) {
    if (!std::isnan(logits(i))) continue;
    throw_argument_error("sample: the logit of token " + std::to_string(i) +
                         " is NaN, but a probability needs a number");
  }
}

// The likelier first, of equals the lower id.
std::vector<Index> ranked(TensorView<const float> logits, Index n) {
  std::vector<Index> ids(static_cast<std::size_t>(logits.count()));
  std::iota(ids.begin(), ids.end(), Index{0});
  const auto end = ids.begin() + std::min(n, logits.count());
  std::partial_sort(ids.begin(), end, ids.end(), [&](Index a, Index b) {
    return logits(a) > logits(b) || (logits(a) == logits(b) && a < b);
  });
  ids.erase(end, ids.end());
  return ids;
}

// Weights of the tokens of `ids` that add up to 1; the first is the largest.
std::vector<double> weights_of(TensorView<const float> logits, const std::vector<Index>& ids,
                               double temperature) {
  const auto largest = static_cast<double>(logits(ids.front()));
  std::vector<double> weights;
  double sum = 0;
  for (const Index id : ids) {
    const double distance = static_cast<double>(logits(id)) - largest;
    // Two infinities are equally likely, and what is infinitely below them is not, however hot.
    double weight = 1;
    if (logits(id) != logits(ids.front())) {
      weight = std::isinf(distance) ? 0 : std::exp(distance / temperature);
    }
    weights.push_back(weight);
    sum += weight;
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// How many of the likeliest have `top_p` of the probability together; at least one.
std::size_t nucleus(const std::vector<double>& weights, double top_p) {
  double sum = 0;
  for (std::size_t n = 0; n < weights.size(); ++n) {
    sum += weights[n];
    if (sum >= top_p) return n + 1;
  }
  return weights.size();
}

}  // namespace

void check_sampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0)) {
    throw_argument_error("sample: the temperature is " + fmt::format("{}", options.temperature) +
                             ", but must be at least 0",
                         "0 takes the likeliest token, 1 samples as the model says");
  }
  if (options.top_k < 0) {
    throw_argument_error("sample: top_k is " + std::to_string(options.top_k) +
                         ", but must be at least 1, or 0 for all tokens");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    throw_argument_error("sample: top_p is " + fmt::format("{}", options.top_p) +
                         ", but must be above 0 and at most 1");
  }
}

Tensor<double> token_probabilities(TensorView<const float> logits, const SamplingOptions& options) {
  check_sampling(options);
  check_logits(logits);
  Tensor<double> probabilities(Shape{logits.count()});
  if (options.temperature == 0) {
    probabilities.data()[ranked(logits, 1).front()] = 1;
    return probabilities;
  }
  const bool is_whole = options.top_k == 0 && options.top_p == 1;
  std::vector<Index> ids;
  if (is_whole) {
    // No order is needed but for the largest, which is first.
    ids.resize(static_cast<std::size_t>(logits.count()));
    std::iota(ids.begin(), ids.end(), Index{0});
    const Index largest = ranked(logits, 1).front();
    std::swap(ids.front(), ids[static_cast<std::size_t>(largest)]);
  } else {
    ids = ranked(logits, options.top_k == 0 ? logits.count() : options.top_k);
  }
  std::vector<double> weights = weights_of(logits, ids, options.temperature);
  if (options.top_p < 1) {
    const std::size_t n = nucleus(weights, options.top_p);
    const double sum =
        std::accumulate(weights.begin(), weights.begin() + static_cast<Index>(n), 0.0);
    weights.resize(n);
    for (double& weight : weights) weight /= sum;
  }
  for (std::size_t i = 0; i < weights.size(); ++i) probabilities.data()[ids[i]] = weights[i];
  return probabilities;
}

SampledToken sample_token(TensorView<const float> logits, const SamplingOptions& options,
                          std::uint64_t position) {
  const Tensor<double> probabilities = token_probabilities(logits, options);
  const double at = RandomStream(options.seed).uniform(position);
  SampledToken sampled;
  double sum = 0;
  // Rounding may leave the sum a little below 1: then the last token that is possible is taken.
  for (Index id = 0; id < probabilities.count(); ++id) {
    if (probabilities(id) == 0) continue;
    sampled.id = id;
    sum += probabilities(id);
    if (sum > at) break;
  }
  sampled.probability = token_probabilities(logits)(sampled.id);
  return sampled;
}

}  // namespace eckart
