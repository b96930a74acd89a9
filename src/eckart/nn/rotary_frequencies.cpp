#include "eckart/core/errors.h"
#include "eckart/linalg/matrix_checks.h"
#include "eckart/nn/rotary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {
namespace {

constexpr double two_pi = 6.283185307179586;

std::string_view name_of(RotaryScaling scaling) {
  switch (scaling) {
    case RotaryScaling::none:
      break;
    case RotaryScaling::linear:
      return "linear";
    case RotaryScaling::ntk:
      return "ntk";
    case RotaryScaling::dynamic_ntk:
      return "dynamic_ntk";
    case RotaryScaling::yarn:
      return "yarn";
    case RotaryScaling::llama3:
      return "llama3";
    case RotaryScaling::longrope:
      return "longrope";
  }
  return "none";
}

[[noreturn]] void refuse(const std::string& what, const std::string& rule) {
  throw_argument_error("rotary: " + what + ", but " + rule);
}

void check_positive(std::string_view name, double value) {
  if (value > 0 && std::isfinite(value)) return;
  refuse(std::string(name) + " is " + number_text(value), "it must be above 0 and finite");
}

void check_original_context(const RotaryOptions& options) {
  if (options.original_context > 1) return;
  refuse("original_context is " + std::to_string(options.original_context),
         std::string(name_of(options.scaling)) + " needs the tokens trained on, above 1");
}

void check_factors(std::string_view name, const std::vector<double>& factors, std::size_t n_pairs) {
  if (factors.size() != n_pairs) {
    refuse(std::string(name) + " has " + counted(static_cast<Index>(factors.size()), "element") +
               " and d_rotary is " + std::to_string(2 * n_pairs),
           "longrope needs one a pair, " + std::to_string(n_pairs));
  }
  for (const double factor : factors) check_positive(name, factor);
}

// The elements that are turned, checked.
Index turned(Index d_head, const RotaryOptions& options) {
  const Index d = options.d_rotary == 0 ? d_head : options.d_rotary;
  if (d < 0 || d > d_head) {
    refuse("d_rotary is " + std::to_string(d) + " and d_head " + std::to_string(d_head),
           "d_rotary must be 0 to d_head");
  }
  if (d % 2 != 0) refuse("d_rotary is " + std::to_string(d), "pairs need an even number");
  check_positive("base", options.base);
  return d;
}

std::vector<double> powers_of(double base, Index d) {
  std::vector<double> angles(static_cast<std::size_t>(d / 2));
  for (std::size_t i = 0; i < angles.size(); ++i) {
    angles[i] = std::pow(base, -static_cast<double>(2 * i) / static_cast<double>(d));
  }
  return angles;
}

// The base that slows the last pair by `stretch` and keeps the first.
double stretched_base(double base, double stretch, Index d) {
  if (d < 4) {
    refuse("d_rotary is " + std::to_string(d), "ntk scaling needs at least 2 pairs, 4 elements");
  }
  return base * std::pow(stretch, static_cast<double>(d) / static_cast<double>(d - 2));
}

double dynamic_base(const RotaryOptions& options, Index d) {
  check_original_context(options);
  const double original = static_cast<double>(options.original_context);
  const double context = std::max(static_cast<double>(options.context), original);
  return stretched_base(options.base, options.factor * context / original - (options.factor - 1),
                        d);
}

// Waves of more than original_context / low_frequency_factor positions are slowed by the factor,
// those of less than original_context / high_frequency_factor are kept, in between a mixture.
void scale_llama3(const RotaryOptions& options, std::vector<double>& angles) {
  check_original_context(options);
  const double low = options.low_frequency_factor;
  const double high = options.high_frequency_factor;
  check_positive("low_frequency_factor", low);
  if (!(high > low) || !std::isfinite(high)) {
    refuse("low_frequency_factor is " + number_text(low) + " and high_frequency_factor " +
               number_text(high),
           "the high one must be the larger");
  }
  for (double& angle : angles) {
    const double turns = static_cast<double>(options.original_context) * angle / two_pi;
    const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    angle *= kept + (1 - kept) / options.factor;
  }
}

// The pair, as a fraction, that turns `turns` times in the original context.
double pair_of_turns(double turns, const RotaryOptions& options, Index d) {
  return static_cast<double>(d) *
         std::log(static_cast<double>(options.original_context) / (turns * two_pi)) /
         (2 * std::log(options.base));
}

void scale_yarn(const RotaryOptions& options, Index d, std::vector<double>& angles) {
  check_original_context(options);
  check_positive("beta_fast", options.beta_fast);
  check_positive("beta_slow", options.beta_slow);
  if (options.base <= 1) {
    refuse("base is " + number_text(options.base), "yarn needs one above 1");
  }
  double first = pair_of_turns(options.beta_fast, options, d);
  double last = pair_of_turns(options.beta_slow, options, d);
  if (options.truncates) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(d - 1));
  // Where both borders are one pair, what is behind it is slowed at once.
  const double width = first == last ? 0.001 : last - first;
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const double slowed = std::clamp((static_cast<double>(i) - first) / width, 0.0, 1.0);
    angles[i] *= (1 - slowed) + slowed / options.factor;
  }
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double yarn_attention_factor(const RotaryOptions& options) {
  if (options.mscale != 0 && options.mscale_all_dim != 0) {
    return yarn_scale(options.factor, options.mscale) /
           yarn_scale(options.factor, options.mscale_all_dim);
  }
  return yarn_scale(options.factor, 1);
}

double longrope_attention_factor(const RotaryOptions& options) {
  if (options.factor <= 1) return 1;
  return std::sqrt(1 + std::log(options.factor) /
                           std::log(static_cast<double>(options.original_context)));
}

void scale_longrope(const RotaryOptions& options, std::vector<double>& angles) {
  check_original_context(options);
  check_factors("short_factors", options.short_factors, angles.size());
  check_factors("long_factors", options.long_factors, angles.size());
  const std::vector<double>& factors =
      options.context > options.original_context ? options.long_factors : options.short_factors;
  for (std::size_t i = 0; i < angles.size(); ++i) angles[i] /= factors[i];
}

}  // namespace

RotaryFrequencies rotary_frequencies(Index d_head, const RotaryOptions& options) {
  const Index d = turned(d_head, options);
  if (options.scaling != RotaryScaling::none) check_positive("factor", options.factor);
  if (options.attention_factor != 0) check_positive("attention_factor", options.attention_factor);
  RotaryFrequencies result;
  result.angles_per_token = powers_of(options.base, d);
  switch (options.scaling) {
    case RotaryScaling::none:
      break;
    case RotaryScaling::linear:
      for (double& angle : result.angles_per_token) angle /= options.factor;
      break;
    case RotaryScaling::ntk:
      result.angles_per_token = powers_of(stretched_base(options.base, options.factor, d), d);
      break;
    case RotaryScaling::dynamic_ntk:
      result.angles_per_token = powers_of(dynamic_base(options, d), d);
      break;
    case RotaryScaling::yarn:
      scale_yarn(options, d, result.angles_per_token);
      result.factor = yarn_attention_factor(options);
      break;
    case RotaryScaling::llama3:
      scale_llama3(options, result.angles_per_token);
      break;
    case RotaryScaling::longrope:
      scale_longrope(options, result.angles_per_token);
      result.factor = longrope_attention_factor(options);
      break;
  }
  const bool has_factor =
      options.scaling == RotaryScaling::yarn || options.scaling == RotaryScaling::longrope;
  if (options.attention_factor != 0) {
    if (!has_factor) {
      refuse("attention_factor is " + number_text(options.attention_factor) + " and scaling is " +
                 std::string(name_of(options.scaling)),
             "only yarn and longrope have one");
    }
    result.factor = options.attention_factor;
  }
  return result;
}

}  // namespace eckart
