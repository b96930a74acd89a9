// Activations of a run of elements with vector instructions, in double whatever their type.
#pragma once

#include "eckart/nn/activations.h"

#include <cstddef>

namespace eckart::detail {

/// out_i = f(x_i) for `n` adjacent elements, which need no alignment; out may be x.
void activate_run(Activation activation, const float* x, float* out, std::size_t n);
void activate_run(Activation activation, const double* x, double* out, std::size_t n);

/// The sum of e^(x_i - shift), in double, for x_i at most `shift`. No term is wrong by more than 3
/// 2^-53 of itself, and 0 where it is below 2^-1022; n / lanes additions follow.
double exp_sum_run(const float* x, std::size_t n, double shift);
double exp_sum_run(const double* x, std::size_t n, double shift);

}  // namespace eckart::detail
