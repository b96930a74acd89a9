#include "eckart/io/checkpoint.h"

#include <algorithm>

namespace eckart {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t end_of_digits(std::string_view text, std::size_t begin) {
  while (begin < text.size() && is_digit(text[begin])) ++begin;
  return begin;
}

std::string_view without_zeros(std::string_view digits) {
  const std::size_t first = digits.find_first_not_of('0');
  return first == std::string_view::npos ? std::string_view() : digits.substr(first);
}

// Runs of digits of any length, by value.
int compare_numbers(std::string_view a, std::string_view b) {
  a = without_zeros(a);
  b = without_zeros(b);
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  return a.compare(b);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (true) {
    const auto different = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    auto at = static_cast<std::size_t>(different.first - a.begin());
    if (at == a.size() && at == b.size()) break;
    // Back to the start of the number that the difference may stand in.
    while (at > 0 && is_digit(a[at - 1])) --at;
    const std::size_t end_a = end_of_digits(a, at);
    const std::size_t end_b = end_of_digits(b, at);
    if (end_a == at || end_b == at) return a < b;
    const int order = compare_numbers(a.substr(at, end_a - at), b.substr(at, end_b - at));
    if (order != 0) return order < 0;
    // The same number with more zeros before it: what follows decides.
    a.remove_prefix(end_a);
    b.remove_prefix(end_b);
  }
  return whole_a < whole_b;
}

}  // namespace eckart
