#include "eckart/model/prose.h"

#include <cstddef>

namespace eckart {

std::string grouped_digits(Index number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string count_of(Index count, std::string_view noun) {
  std::string text = grouped_digits(count) + ' ' + std::string(noun);
  if (count == 1) return text;
  const bool ends_in_y = text.size() > 1 && text.back() == 'y' &&
                         std::string_view("aeiou").find(text[text.size() - 2]) == std::string::npos;
  if (!ends_in_y) return text + 's';
  text.pop_back();
  return text + "ies";
}

std::string number_ranges(const std::vector<Index>& ascending) {
  std::string text;
  for (std::size_t begin = 0; begin < ascending.size();) {
    std::size_t end = begin + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += std::to_string(ascending[begin]);
    if (end - begin == 2) text += ',' + std::to_string(ascending[end - 1]);
    if (end - begin > 2) text += ".." + std::to_string(ascending[end - 1]);
    begin = end;
  }
  return text;
}

std::string listed(const std::vector<std::string>& items, std::string_view last_word) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? ' ' + std::string(last_word) + ' ' : ", ";
    text += items[i];
  }
  return text;
}

}  // namespace eckart
