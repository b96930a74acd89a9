#include "eckart/io/checkpoint.h"
#include "eckart/io/open_shards.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

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

// Eight bytes a step: names of one model begin with the same dozens of bytes.
std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t at = 0;
  std::uint64_t from_a = 0;
  std::uint64_t from_b = 0;
  for (; at + sizeof from_a <= shorter; at += sizeof from_a) {
    std::memcpy(&from_a, a.data() + at, sizeof from_a);
    std::memcpy(&from_b, b.data() + at, sizeof from_b);
    if (from_a != from_b) break;
  }
  while (at < shorter && a[at] == b[at]) ++at;
  return at;
}

}  // namespace

int compare_naturally(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (true) {
    std::size_t at = common_prefix(a, b);
    if (at == a.size() && at == b.size()) return whole_a.compare(whole_b);
    // Back to the start of the number that the difference may stand in.
    while (at > 0 && is_digit(a[at - 1])) --at;
    const std::size_t end_a = end_of_digits(a, at);
    const std::size_t end_b = end_of_digits(b, at);
    if (end_a == at || end_b == at) return a.substr(at).compare(b.substr(at));
    const int order = compare_numbers(a.substr(at, end_a - at), b.substr(at, end_b - at));
    if (order != 0) return order;
    // The same number with more zeros before it: what follows decides.
    a.remove_prefix(end_a);
    b.remove_prefix(end_b);
  }
}

bool natural_less(std::string_view a, std::string_view b) { return compare_naturally(a, b) < 0; }

}  // namespace eckart
