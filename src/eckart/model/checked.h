// Whole-number arithmetic that says what overflowed. Configs are written by strangers: a hidden
// size of 2^40 must end in a message, not in a wrong count.
#pragma once

#include "eckart/core/errors.h"
#include "eckart/core/shape.h"

#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

namespace eckart {

/// Throws ArgumentError: `quantity` is more than a 63-bit count holds.
[[noreturn]] inline void throw_overflow(std::string_view quantity) {
  throw_argument_error("count: " + std::string(quantity) +
                       ": the result is more than 2^63 - 1, but counts are 63-bit whole numbers");
}

/// The most tokens, sequences and the like that are counted with.
inline constexpr Index max_tokens = Index{1} << 40;

/// Throws ArgumentError unless `value` is from `least` to `max_tokens`. `name` says whose it is:
/// `count: context`.
inline void check_range(std::string_view name, Index value, Index least) {
  if (value >= least && value <= max_tokens) return;
  throw_argument_error(std::string(name) + " is " + std::to_string(value) + ", but must be from " +
                       std::to_string(least) + " to 2^40");
}

/// The product of factors, each at least 0; 1 of none. Throws ArgumentError, naming `quantity`,
/// when it overflows.
inline Index checked_product(std::initializer_list<Index> factors, std::string_view quantity) {
  Index product = 1;
  bool overflow = false;
  for (const Index factor : factors) {
    if (factor == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(product, factor, &product);
  }
  if (overflow) throw_overflow(quantity);
  return product;
}

/// The sum of terms, each at least 0. Throws as `checked_product`.
inline Index checked_sum(std::initializer_list<Index> terms, std::string_view quantity) {
  Index sum = 0;
  for (const Index term : terms) {
    if (__builtin_add_overflow(sum, term, &sum)) throw_overflow(quantity);
  }
  return sum;
}

/// As `checked_product`, but the largest Index where it overflows: for what is only compared.
inline Index saturated_product(std::initializer_list<Index> factors) {
  Index product = 1;
  bool overflow = false;
  for (const Index factor : factors) {
    if (factor == 0) return 0;
    overflow = overflow || __builtin_mul_overflow(product, factor, &product);
  }
  return overflow ? std::numeric_limits<Index>::max() : product;
}

/// As `checked_sum`, but the largest Index where it overflows.
inline Index saturated_sum(std::initializer_list<Index> terms) {
  Index sum = 0;
  for (const Index term : terms) {
    if (__builtin_add_overflow(sum, term, &sum)) return std::numeric_limits<Index>::max();
  }
  return sum;
}

}  // namespace eckart
