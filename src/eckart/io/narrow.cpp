#include "eckart/io/narrow.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/narrow_simd.h"

#include <cstring>
#include <string>

namespace eckart {
namespace {

// Elements of one piece of a parallel conversion: 1 MiB of floats, long against the hand-over.
constexpr Index grain = 1 << 18;

}  // namespace

bool is_narrowable(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2:
      return true;
    default:
      return false;
  }
}

void narrow(Dtype dtype, std::span<const float> values, std::span<std::byte> out) {
  const std::string name(to_string(dtype));
  if (!is_narrowable(dtype)) {
    throw_argument_error("narrow: " + name +
                         " is asked for, but only F32 F16 BF16 F8_E4M3 F8_E5M2 are written");
  }
  const std::size_t element = static_cast<std::size_t>(bits(dtype)) / 8;
  if (values.size() * element != out.size()) {
    throw_argument_error("narrow: " + std::to_string(out.size()) + " bytes for " +
                         std::to_string(values.size()) + " elements of " + name +
                         ", but each takes " + std::to_string(element));
  }
  auto* const to = reinterpret_cast<std::uint8_t*>(out.data());
  parallel_for(static_cast<Index>(values.size()), grain, [&](Index begin, Index end) {
    const auto first = static_cast<std::size_t>(begin);
    const auto n = static_cast<std::size_t>(end - begin);
    if (dtype == Dtype::f32) {
      std::memcpy(to + first * element, values.data() + first, n * element);
    } else {
      narrow_simd(dtype, values.subspan(first, n), to + first * element);
    }
  });
}

}  // namespace eckart
