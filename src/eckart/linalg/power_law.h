// A power law fitted to the tail of a spectrum.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"

#include <cstdint>
#include <optional>

namespace eckart {

/// p(lambda) proportional to lambda^-alpha for lambda >= xmin, fitted to eigenvalues lambda_i =
/// sigma_i^2 as Clauset, Shalizi and Newman do (SIAM Review 51, 2009): for every xmin that is one of
/// the values, alpha is the maximum-likelihood estimate 1 + n / sum ln(lambda_j / xmin); the xmin
/// with the smallest Kolmogorov-Smirnov distance is kept.
///
/// The literature's definitions are used. WeightWatcher, whose `alpha` this is comparable with,
/// differs: it drops eigenvalues below an absolute 1e-5 (here only those that are 0 or unresolved,
/// so that alpha does not depend on the matrix' scale), and its D compares with the upper side of
/// the empirical steps alone (here both sides, as Kolmogorov and Smirnov have it, so that D is up to
/// 1 / n_tail larger and xmin may differ). Its `spectral_norm` is lambda_max = sigma_max^2.
struct PowerLaw {
  double alpha = 0;           // exponent of the density, above 1
  double xmin = 0;            // an eigenvalue: the smallest one of the tail
  double sigma_min = 0;       // its root, a singular value: right where xmin leaves double's range
  double ks_distance = 0;     // 0 to 1: largest difference of the two distribution functions
  double standard_error = 0;  // of alpha, asymptotic: (alpha - 1) / sqrt(n_tail)
  Index n_tail = 0;           // eigenvalues from xmin on
  Index n_values = 0;         // eigenvalues that were looked at
  /// The share of samples of the fitted law (below xmin: of the values themselves) that lie further
  /// from their own fit than the values from theirs. Below 0.1 the law is hardly plausible. Nothing
  /// unless `bootstrap` asked for it.
  std::optional<double> p_value;
};

struct PowerLawOptions {
  double floor = 0;        // singular values up to this are left out
  Index bootstrap = 0;     // samples for p_value; its error is about 0.5 / sqrt(bootstrap)
  std::uint64_t seed = 0;  // of the samples
};

/// Fits `singular_values` (a vector in any order, at least 0, each sigma_i and not its square).
/// Nothing when there are fewer than 2 values above the floor that differ by more than rounding.
/// Cost for n values: one sort, prefix sums of logarithms, and for each xmin the distance by branch
/// and bound: both distribution functions are monotone, so that the ends of a range bound what is
/// between, and an xmin is given up as soon as it is worse than the best. The result is that of
/// looking at all n^2 / 2 pairs. 4,096 values take about 5 ms.
/// Multiplying all values by one number changes xmin and sigma_min alone, up to rounding. The square
/// of a value beyond 1.3e154 overflows: xmin is then infinite. Below 1.5e-162 it is 0.
/// Throws ShapeError when `singular_values` is no vector, ArgumentError when one is negative or not
/// finite, or `bootstrap` is negative.
std::optional<PowerLaw> power_law(TensorView<const double> singular_values,
                                  const PowerLawOptions& options = {});

}  // namespace eckart
