// A row of a stored matrix against a vector, with vector instructions: what a product with one
// token is made of, where memory is what there is too little of.
#pragma once

#include <cstddef>
#include <cstdint>

namespace eckart::detail {

/// Rows in the two formats that are multiplied where they lie. `n` elements, which need no
/// alignment. Sums in float, at least 16 side by side.
float dot_f32(const std::uint8_t* row, const float* x, std::size_t n);
float dot_bf16(const std::uint8_t* row, const float* x, std::size_t n);

/// sum += factor row.
void add_scaled_f32(const std::uint8_t* row, float factor, float* sum, std::size_t n);
void add_scaled_bf16(const std::uint8_t* row, float factor, float* sum, std::size_t n);

}  // namespace eckart::detail
