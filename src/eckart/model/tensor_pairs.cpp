#include "eckart/model/tensor_pairs.h"

#include "eckart/io/checkpoint.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <unordered_map>

namespace eckart {
namespace {

using ByName = std::unordered_map<std::string_view, const LogicalTensor*>;

ByName by_name(const std::vector<LogicalTensor>& tensors) {
  ByName found;
  for (const LogicalTensor& tensor : tensors) found.emplace(tensor.name, &tensor);
  return found;
}

// The prefix with which most of `shorter`'s names that `longer` lacks are names of `longer`, and how
// many. Prefixes end with a dot, and no base model's has more than a few parts.
struct Prefix {
  std::string text;
  std::size_t n_names = 0;
};

Prefix common_prefix(const ByName& shorter, const ByName& longer) {
  constexpr int most_parts = 3;
  std::map<std::string_view, std::size_t> counts;
  for (const auto& entry : longer) {
    const std::string_view name = entry.first;
    if (shorter.contains(name)) continue;
    std::size_t dot = name.find('.');
    for (int part = 0; part < most_parts && dot != std::string_view::npos; ++part) {
      const std::string_view rest = name.substr(dot + 1);
      if (shorter.contains(rest) && !longer.contains(rest)) ++counts[name.substr(0, dot + 1)];
      dot = name.find('.', dot + 1);
    }
  }
  Prefix best;
  for (const auto& [text, count] : counts) {
    if (count > best.n_names) best = {std::string(text), count};
  }
  return best;
}

const std::string& name_of(const TensorPair& pair) {
  return pair.b != nullptr ? pair.b->name : pair.a->name;
}

}  // namespace

TensorPairs tensor_pairs(const std::vector<LogicalTensor>& a, const std::vector<LogicalTensor>& b) {
  const ByName in_a = by_name(a), in_b = by_name(b);
  const Prefix of_b = common_prefix(in_a, in_b);
  const Prefix of_a = common_prefix(in_b, in_a);
  TensorPairs result;
  if (of_a.n_names > of_b.n_names) {
    result.prefix_of_a = of_a.text;
  } else {
    result.prefix_of_b = of_b.text;
  }
  // A name that both have is never paired by its prefix.
  const auto partner = [](const ByName& own, const ByName& other, const std::string& name,
                          const std::string& added, const std::string& removed) {
    if (const auto same = other.find(name); same != other.end()) return same->second;
    const LogicalTensor* found = nullptr;
    std::string wanted;
    if (!added.empty()) wanted = added + name;
    if (!removed.empty() && name.starts_with(removed)) wanted = name.substr(removed.size());
    if (wanted.empty() || own.contains(wanted)) return found;
    if (const auto other_name = other.find(wanted); other_name != other.end()) {
      found = other_name->second;
    }
    return found;
  };
  for (const LogicalTensor& tensor : b) {
    result.pairs.push_back(
        {partner(in_b, in_a, tensor.name, result.prefix_of_a, result.prefix_of_b), &tensor});
  }
  for (const LogicalTensor& tensor : a) {
    if (partner(in_a, in_b, tensor.name, result.prefix_of_b, result.prefix_of_a) == nullptr) {
      result.pairs.push_back({&tensor, nullptr});
    }
  }
  std::stable_sort(result.pairs.begin(), result.pairs.end(),
                   [](const TensorPair& x, const TensorPair& y) {
                     return natural_less(name_of(x), name_of(y));
                   });
  return result;
}

}  // namespace eckart
