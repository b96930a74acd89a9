#include "eckart/core/tensor.h"

#include <cstdint>
#include <new>

namespace eckart::detail {
namespace {

// A cache line, and one 512-bit register.
constexpr std::size_t alignment = 64;

}  // namespace

void* allocate_elements(const Shape& shape, std::size_t element_bytes) {
  std::size_t bytes = 0;
  const bool too_many =
      __builtin_mul_overflow(static_cast<std::size_t>(shape.count()), element_bytes, &bytes) ||
      bytes > static_cast<std::size_t>(PTRDIFF_MAX) - alignment;
  // At least one line, so that an empty tensor has an address too.
  void* const elements = too_many ? nullptr
                                  : ::operator new (bytes == 0 ? alignment : bytes,
                                                    std::align_val_t{alignment}, std::nothrow);
  if (elements == nullptr) {
    const double gigabytes =
        static_cast<double>(shape.count()) * static_cast<double>(element_bytes) / 1e9;
    throw_shape_error("tensor: " + to_string(shape) + " of " + std::to_string(element_bytes) +
                      "-byte elements takes " + std::to_string(gigabytes) +
                      " GB, which this machine can't give");
  }
  return elements;
}

void free_elements(void* elements) { ::operator delete (elements, std::align_val_t{alignment}); }

}  // namespace eckart::detail
