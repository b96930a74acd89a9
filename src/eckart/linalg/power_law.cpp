#include "eckart/linalg/power_law.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace eckart {
namespace {

using Logs = std::vector<double>;  // of eigenvalues, ascending

// Values whose logarithms differ by less are one value with rounding errors: an alpha above 10^5.
constexpr double least_excess = 1e-5;

struct Fit {
  std::size_t first = 0;  // of the tail
  double slope = 0;       // alpha - 1
  double distance = std::numeric_limits<double>::infinity();
};

// The tail from one value on under its own law, and how far the two distributions are apart.
class Tail {
 public:
  Tail(const Logs& logs, std::size_t first, double slope)
      : logs_(logs), first_(first), n_(logs.size() - first), slope_(slope) {}

  // The Kolmogorov-Smirnov distance, or, where that is not below `enough`, some number that is not.
  double distance(double enough) {
    constexpr std::size_t n_ranges = 16;
    const std::size_t last = n_ - 1;
    double law = law_at(0);
    for (std::size_t i = 1; i <= n_ranges && lower_ < enough; ++i) {
      const std::size_t begin = last * (i - 1) / n_ranges, end = last * i / n_ranges;
      const double next = end == begin ? law : law_at(end);
      if (end > begin + 1) ranges_.push_back({begin, end, law, next});
      law = next;
    }
    while (!ranges_.empty() && lower_ < enough) {
      const Range range = ranges_.back();
      ranges_.pop_back();
      if (upper_bound(range) <= lower_) continue;
      const std::size_t middle = (range.begin + range.end) / 2;
      const double law_middle = law_at(middle);
      if (middle > range.begin + 1) {
        ranges_.push_back({range.begin, middle, range.law_begin, law_middle});
      }
      if (range.end > middle + 1) {
        ranges_.push_back({middle, range.end, law_middle, range.law_end});
      }
    }
    return lower_;
  }

 private:
  // Values begin and end have been looked at, those between not.
  struct Range {
    std::size_t begin, end;
    double law_begin, law_end;
  };

  double step(std::size_t k) const { return static_cast<double>(k) / static_cast<double>(n_); }

  // The law's distribution function at value k of the tail, where the empirical one steps from k / n
  // to (k + 1) / n.
  double law_at(std::size_t k) {
    const double law = -std::expm1(-slope_ * (logs_[first_ + k] - logs_[first_]));
    lower_ = std::max({lower_, law - step(k), step(k + 1) - law});
    return law;
  }

  double upper_bound(const Range& range) const {
    return std::max(range.law_end - step(range.begin + 1), step(range.end) - range.law_begin);
  }

  const Logs& logs_;
  std::size_t first_;
  std::size_t n_;
  double slope_;
  double lower_ = 0;  // of the distance
  std::vector<Range> ranges_;
};

// The best tail of at least two values that differ.
Fit best_fit(const Logs& logs) {
  const std::size_t n = logs.size();
  std::vector<double> sums(n + 1, 0.0);  // of the logarithms from each value on
  for (std::size_t i = n; i-- > 0;) sums[i] = sums[i + 1] + logs[i];
  Fit best;
  const auto look_at = [&](std::size_t first) {
    if (first > 0 && logs[first] == logs[first - 1]) return;
    const auto n_tail = static_cast<double>(n - first);
    // No tail is nearer to its law than half a step.
    if (best.distance <= 0.5 / n_tail) return;
    const double excess = sums[first] / n_tail - logs[first];
    if (excess <= least_excess) return;
    const double distance = Tail(logs, first, 1 / excess).distance(best.distance);
    if (distance < best.distance || (distance == best.distance && first < best.first)) {
      best = {first, 1 / excess, distance};
    }
  };
  // A few first, so that most of the others are given up early.
  const std::size_t stride = std::max<std::size_t>(1, n / 64);
  for (std::size_t first = 0; first + 1 < n; first += stride) look_at(first);
  for (std::size_t first = 0; first + 1 < n; ++first) look_at(first);
  return best;
}

// A sample as large as the values: from the law with the tail's share, else from below xmin.
Logs sample(const Logs& logs, const Fit& fit, const RandomStream& random) {
  const std::size_t n = logs.size();
  const double share = static_cast<double>(n - fit.first) / static_cast<double>(n);
  Logs drawn(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double from_tail = random.uniform(2 * i);
    if (from_tail < share) {
      drawn[i] = logs[fit.first] - std::log1p(-random.uniform(2 * i + 1)) / fit.slope;
    } else {
      drawn[i] = logs[static_cast<std::size_t>(random.below(2 * i + 1, fit.first))];
    }
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

double p_value(const Logs& logs, const Fit& fit, const PowerLawOptions& options) {
  std::atomic<Index> n_further{0};
  parallel_for(options.bootstrap, 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const RandomStream random(options.seed, static_cast<std::uint64_t>(i));
      if (best_fit(sample(logs, fit, random)).distance >= fit.distance) ++n_further;
    }
  });
  return static_cast<double>(n_further) / static_cast<double>(options.bootstrap);
}

Logs logs_of(TensorView<const double> singular_values, double floor) {
  Logs logs;
  logs.reserve(static_cast<std::size_t>(singular_values.count()));
  Index position = 0;
  for_each_element(
      [&](const double& sigma) {
        if (!std::isfinite(sigma) || sigma < 0) {
          throw_argument_error("power_law: singular_values has " + std::to_string(sigma) + " at " +
                               std::to_string(position) +
                               ", but singular values are finite and at least 0");
        }
        if (sigma > floor && sigma > 0) logs.push_back(2 * std::log(sigma));
        ++position;
      },
      singular_values);
  std::sort(logs.begin(), logs.end());
  return logs;
}

}  // namespace

std::optional<PowerLaw> power_law(TensorView<const double> singular_values,
                                  const PowerLawOptions& options) {
  if (singular_values.rank() != 1) {
    throw_shape_error("power_law: singular_values is " + to_string(singular_values.shape()) +
                      ", but it must be a vector");
  }
  if (options.bootstrap < 0) {
    throw_argument_error("power_law: bootstrap is " + std::to_string(options.bootstrap) +
                         ", but it must be at least 0");
  }
  const Logs logs = logs_of(singular_values, options.floor);
  const Fit fit = best_fit(logs);
  if (!std::isfinite(fit.distance)) return std::nullopt;
  const std::size_t n_tail = logs.size() - fit.first;
  PowerLaw law{.alpha = 1 + fit.slope,
               .xmin = std::exp(logs[fit.first]),
               .sigma_min = std::exp(logs[fit.first] / 2),
               .ks_distance = fit.distance,
               .standard_error = fit.slope / std::sqrt(static_cast<double>(n_tail)),
               .n_tail = static_cast<Index>(n_tail),
               .n_values = static_cast<Index>(logs.size()),
               .p_value = {}};
  if (options.bootstrap > 0) law.p_value = p_value(logs, fit, options);
  return law;
}

}  // namespace eckart
