// The formats that are widened with vector instructions: floats of at most 32 bits.
#pragma once

#include "eckart/io/dtype.h"

#include <cstddef>
#include <cstdint>

namespace eckart {

/// `n` stored elements, which need no alignment.
struct StoredRun {
  Dtype dtype = Dtype::f32;
  const std::uint8_t* bytes = nullptr;
  std::size_t n = 0;
};

/// Widens F32, F16, BF16 and the F8 formats, and leaves `out` alone for any other dtype. `stream`
/// writes past the caches.
void widen_simd(const StoredRun& in, float* out, bool stream);
void widen_simd(const StoredRun& in, double* out, bool stream);

}  // namespace eckart
