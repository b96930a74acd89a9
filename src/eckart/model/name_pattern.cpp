#include "eckart/model/name_pattern.h"

#include <cstddef>

namespace eckart {

bool matches_pattern(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, next = 0;  // in the name, in the pattern
  std::size_t star = std::string_view::npos, star_at = 0;
  while (at < name.size()) {
    if (next < pattern.size() && pattern[next] == '*') {
      star = next++;
      star_at = at;
    } else if (next < pattern.size() && (pattern[next] == '?' || pattern[next] == name[at])) {
      ++at;
      ++next;
    } else if (star != std::string_view::npos) {
      // The last star takes one letter more; earlier ones need never be tried again.
      at = ++star_at;
      next = star + 1;
    } else {
      return false;
    }
  }
  while (next < pattern.size() && pattern[next] == '*') ++next;
  return next == pattern.size();
}

}  // namespace eckart
