// The passes of a norm over one vector, with vector instructions, in double whatever its type.
#pragma once

#include <cstddef>

namespace eckart::detail {

/// The sum of (x_i - mean)^2 of adjacent elements, eight sums side by side as in `sum_run`.
double centered_squares_run(const float* x, std::size_t n, double mean);
double centered_squares_run(const double* x, std::size_t n, double mean);

template <class T>
struct NormalizeRun {
  double mean = 0;
  double inverse = 1;       // of the deviation
  double weight_shift = 0;  // added to each weight
  const T* weight = nullptr;
  const T* bias = nullptr;
};

/// out_i = (x_i - mean) inverse (weight_i + weight_shift) + bias_i, rounded once to the elements'
/// type; without a weight or a bias without it. out may be x.
void normalize_run(const float* x, float* out, std::size_t n, const NormalizeRun<float>& run);
void normalize_run(const double* x, double* out, std::size_t n, const NormalizeRun<double>& run);

}  // namespace eckart::detail
