#include "eckart/core/tensor.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace eckart::detail {
namespace {

// A cache line, and one 512-bit register.
constexpr std::size_t alignment = 64;

std::string size_text(double bytes) {
  constexpr std::array<const char*, 8> units = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB", "ZB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < units.size(); ++unit) bytes /= 1000;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", unit == 0 ? 0 : 1, bytes, units[unit]);
  return text.data();
}

// Asks for pages of 2 MiB where there is room for some: a first touch of small ones, one by one,
// costs as much as a pass over the memory.
void prefer_large_pages([[maybe_unused]] void* elements, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__)
  constexpr std::size_t least = std::size_t{4} << 20;
  constexpr std::size_t page = 4096;
  if (bytes < least) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(elements) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(elements) + bytes;
  // Advice alone: where it is refused, nothing is lost.
  static_cast<void>(madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE));
#endif
}

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
    const double wanted = static_cast<double>(shape.count()) * static_cast<double>(element_bytes);
    throw_shape_error("tensor: " + to_string(shape) + " of " + std::to_string(element_bytes) +
                      "-byte elements takes " + size_text(wanted) +
                      ", which this machine can't give");
  }
  prefer_large_pages(elements, bytes);
  return elements;
}

void free_elements(void* elements) { ::operator delete (elements, std::align_val_t{alignment}); }

const Shape& taken_shape() {
  static const Shape shape{0};
  return shape;
}

}  // namespace eckart::detail
