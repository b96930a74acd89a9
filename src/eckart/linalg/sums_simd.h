// Sums over a run of elements with vector instructions, in double.
#pragma once

#include <cstddef>

namespace eckart::detail {

/// Sums of `n` adjacent elements, which need no alignment. Floats are widened first, so that their
/// products are exact. At least eight sums run side by side and are added at the end: no term goes
/// through more than n / 8 + 10 additions, each with an error of 2^-53 of what it gives.
double sum_run(const float* x, std::size_t n);
double sum_run(const double* x, std::size_t n);
double sum_magnitudes_run(const float* x, std::size_t n);
double sum_magnitudes_run(const double* x, std::size_t n);
double dot_run(const float* x, const float* y, std::size_t n);
double dot_run(const double* x, const double* y, std::size_t n);
/// The sum of (x_i - y_i)^2.
double squared_distance_run(const float* x, const float* y, std::size_t n);
double squared_distance_run(const double* x, const double* y, std::size_t n);
/// The sum of (scale x_i)^2.
double sum_squares_run(const float* x, std::size_t n, double scale);
double sum_squares_run(const double* x, std::size_t n, double scale);
/// The largest |x_i|, 0 of none; NaN when one is NaN.
double largest_magnitude_run(const float* x, std::size_t n);
double largest_magnitude_run(const double* x, std::size_t n);

}  // namespace eckart::detail
