#include "eckart/model/difference_list.h"

#include "eckart/io/findings.h"
#include "eckart/model/prose.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart::detail {
namespace {

std::string where_text(const NameFold& names, bool has_layer) {
  if (names.count() == 1) return {};
  if (!has_layer) return " (" + count_of(names.count(), "tensor") + ')';
  const Index n_layers = static_cast<Index>(names.numbers(0).size());
  if (n_layers == names.count()) return " in " + count_of(n_layers, "layer");
  return " (" + count_of(names.count(), "tensor") + " in " + count_of(n_layers, "layer") + ')';
}

void replace_all(std::string& text, std::string_view wanted, const std::string& replacement) {
  for (std::size_t at = text.find(wanted); at != std::string::npos;
       at = text.find(wanted, at + replacement.size())) {
    text.replace(at, wanted.size(), replacement);
  }
}

}  // namespace

void DifferenceList::add(const OneDifference& difference) {
  NameTemplate name = name_template(difference.name);
  std::string key(difference.kind);
  for (const std::string& part : {name.text, difference.sentence, difference.hint}) {
    key += '\n';
    key += part;
  }
  const auto [place, is_new] = by_key_.emplace(std::move(key), folded_.size());
  if (is_new) folded_.push_back({difference, NameFold(std::move(name.text)), 0, 0});
  Folded& folded = folded_[place->second];
  folded.names.add(name.numbers);
  folded.elements += difference.elements;
  folded.bytes += difference.bytes;
}

void DifferenceList::add(Difference difference) { plain_.push_back(std::move(difference)); }

Difference DifferenceList::worded(const Folded& folded) {
  Difference difference;
  difference.level = folded.first.level;
  difference.kind = folded.first.kind;
  difference.tensor = folded.names.name();
  difference.expected = folded.first.expected;
  difference.found = folded.first.found;
  difference.hint = folded.first.hint;
  difference.count = folded.names.count();
  difference.message = folded.first.sentence;
  replace_all(difference.message, "{where}", where_text(folded.names, folded.first.has_layer));
  replace_all(difference.message, "{elements}", grouped_digits(folded.elements));
  replace_all(difference.message, "{bytes}", grouped_digits(static_cast<Index>(folded.bytes)));
  // Names come out of files: in a sentence they must not steer the terminal.
  replace_all(difference.message, "{name}", printable(difference.tensor));
  return difference;
}

std::vector<Difference> DifferenceList::finish() const {
  std::vector<Difference> all = plain_;
  for (const Folded& folded : folded_) all.push_back(worded(folded));
  std::stable_sort(all.begin(), all.end(),
                   [](const Difference& a, const Difference& b) { return a.level < b.level; });
  return all;
}

}  // namespace eckart::detail
