#include "eckart/linalg/finite.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace eckart {
namespace {

// Elements of one piece of a parallel scan: 256 KB or more, so that a piece outweighs its start.
constexpr Index piece_size = Index{1} << 16;

// NaN and infinity are the numbers whose exponent is all ones. On integers, since a compiler may
// not reorder sums of floats and this loop has to vectorise.
template <class T>
bool is_finite_run(const T* run, Index count) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits exponent = sizeof(T) == 4 ? Bits{0x7F800000U} : static_cast<Bits>(0x7FF0ULL << 48);
  Bits found = 0;
  for (Index i = 0; i < count; ++i) {
    found |= static_cast<Bits>((std::bit_cast<Bits>(run[i]) & exponent) == exponent);
  }
  return found == 0;
}

template <class T>
bool is_finite_array(const T* data, Index count) {
  if (count <= piece_size) return is_finite_run(data, count);
  std::atomic<bool> finite{true};
  parallel_for(count, piece_size, [&](Index begin, Index end) {
    if (!is_finite_run(data + begin, end - begin)) finite = false;
  });
  return finite;
}

template <class T>
bool is_finite(TensorView<const T> a) {
  if (a.count() == 0) return true;
  if (a.is_row_major()) return is_finite_array(a.data(), a.count());
  if (a.transpose().is_row_major()) return is_finite_array(a.data(), a.count());
  bool finite = true;
  for_each_element([&](const T& element) { finite = finite && std::isfinite(element); }, a);
  return finite;
}

// Number of the first element, in row-major order, that is not finite; and which it is.
template <class T>
struct Found {
  Index number = 0;
  T element{};
};

template <class T>
Found<T> first_not_finite(TensorView<const T> a) {
  Found<T> found{-1, T{}};
  Index number = 0;
  for_each_element(
      [&](const T& element) {
        if (found.number < 0 && !std::isfinite(element)) found = {number, element};
        ++number;
      },
      a);
  return found;
}

std::string position_text(const Shape& shape, Index number) {
  std::string text;
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(number % shape.size(axis)) + (text.empty() ? "" : ", ") + text;
    number /= shape.size(axis);
  }
  return "(" + text + ")";
}

}  // namespace

template <class T>
void check_finite(std::string_view operation, std::string_view name, TensorView<const T> a) {
  if (is_finite(a)) return;
  const Found<T> found = first_not_finite(a);
  std::string what = "a NaN";
  if (std::isinf(found.element)) what = found.element > T{0} ? "an Inf" : "a -Inf";
  std::string message = std::string(operation) + ": " + std::string(name) + " has " + what;
  if (a.rank() > 0) message += " at " + position_text(a.shape(), found.number);
  throw_argument_error(message + ", but every element must be finite");
}

template void check_finite(std::string_view, std::string_view, TensorView<const float>);
template void check_finite(std::string_view, std::string_view, TensorView<const double>);

}  // namespace eckart
