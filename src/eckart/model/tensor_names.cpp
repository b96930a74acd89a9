#include "eckart/model/tensor_names.h"

#include "eckart/model/prose.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace eckart {

Index name_number(std::string_view part) {
  constexpr std::size_t max_digits = 18;  // what fits in 63 bits
  if (part.empty() || part.size() > max_digits || (part.size() > 1 && part[0] == '0')) return -1;
  Index number = -1;
  const char* const end = part.data() + part.size();
  const auto [stop, error] = std::from_chars(part.data(), end, number);
  return stop == end && part[0] != '-' ? number : -1;
}

NameTemplate name_template(std::string_view name) {
  NameTemplate result;
  read_name_template(name, result);
  return result;
}

void read_name_template(std::string_view name, NameTemplate& result) {
  result.text.clear();
  result.numbers.clear();
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const Index number = name_number(part);
    if (begin > 0) result.text += '.';
    if (number < 0) {
      result.text += part;
    } else {
      result.text += number_mark;
      result.numbers.push_back(number);
    }
    begin = end + 1;
  }
}

void NameFold::add(const std::vector<Index>& numbers) {
  if (slots_.size() < numbers.size()) slots_.resize(numbers.size());
  for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
    std::vector<Index>& seen = slots_[slot];
    // Names come in order, so most repeats stand at the end; the rest go in `numbers()`.
    if (seen.empty() || seen.back() != numbers[slot]) seen.push_back(numbers[slot]);
  }
  ++count_;
}

std::vector<Index> NameFold::numbers(std::size_t slot) const {
  if (slot >= slots_.size()) return {};
  std::vector<Index> sorted = slots_[slot];
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

std::string NameFold::name() const {
  std::string name;
  std::size_t slot = 0;
  for (const char letter : text_) {
    if (letter != number_mark || slot >= slots_.size()) {
      name += letter;
      continue;
    }
    const std::vector<Index> found = numbers(slot++);
    const std::string ranges = number_ranges(found);
    name += found.size() == 1 ? ranges : '{' + ranges + '}';
  }
  return name;
}

}  // namespace eckart
