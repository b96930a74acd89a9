// Whose names an adapter's modules go by in the files of a base.
#include "eckart/core/edit_distance.h"
#include "eckart/core/errors.h"
#include "eckart/lora/adapter.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace eckart {
namespace {

constexpr std::string_view weight = ".weight";
// Of so many unmatched names the closest ones are looked for, and so many are given.
constexpr std::size_t max_explained = 20;
constexpr std::size_t max_closest = 3;

std::string underscored(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '.', '_');
  return result;
}

// What a name is without its first part, or nothing.
std::string_view without_first(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
}

class BaseNames {
 public:
  explicit BaseNames(const std::vector<std::string>& tensors) {
    for (const std::string& tensor : tensors) {
      add(tensor);
      const std::string_view name = tensor;
      if (name.ends_with(weight)) add(name.substr(0, name.size() - weight.size()));
    }
  }

  // The base's name for a dotted one, or empty.
  std::string_view dotted(std::string_view name) const {
    for (std::string_view rest = name; !rest.empty(); rest = without_first(rest)) {
      // One part alone is too common to mean the same module.
      if (rest != name && rest.find('.') == std::string_view::npos) break;
      if (names_.contains(rest)) return names_.find(rest)->first;
    }
    const auto longer = by_ending_.find(name);
    return longer == by_ending_.end() ? std::string_view() : longer->second;
  }

  // The base's name for one with underscores and perhaps kohya's prefix (`lora_te1_`), or empty.
  std::string_view underlined(std::string_view name) const {
    std::vector<std::string_view> candidates{name};
    constexpr std::string_view first = "lora_";
    if (name.starts_with(first)) {
      candidates.push_back(name.substr(first.size()));
      const std::size_t mark = name.find('_', first.size());
      if (mark != std::string_view::npos) candidates.push_back(name.substr(mark + 1));
    }
    for (const auto* names : {&by_underscored_, &by_underscored_ending_}) {
      for (const std::string_view candidate : candidates) {
        const auto found = names->find(std::string(candidate));
        if (found != names->end() && !found->second.empty()) return found->second;
      }
    }
    return {};
  }

  std::vector<std::string> closest(std::string_view name, bool is_underscored) const {
    std::vector<std::pair<std::size_t, std::string>> distances;
    for (const auto& [known, unused] : names_) {
      const std::string as_given = is_underscored ? underscored(known) : std::string(known);
      distances.emplace_back(edit_distance(name, as_given), known);
    }
    const std::size_t n = std::min(max_closest, distances.size());
    std::partial_sort(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(n),
                      distances.end());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < n; ++i) names.push_back(distances[i].second);
    return names;
  }

 private:
  void add(std::string_view name) {
    if (!names_.emplace(name, true).second) return;
    for (std::string_view end = without_first(name); !end.empty(); end = without_first(end)) {
      add_unique(by_ending_, end, name);
      const bool has_parts = end.find('.') != std::string_view::npos;
      if (has_parts) add_unique(by_underscored_ending_, underscored(end), name);
    }
    add_unique(by_underscored_, underscored(name), name);
  }

  // What two names share stands for neither.
  template <class Key>
  static void add_unique(std::unordered_map<Key, std::string_view>& names, Key key,
                         std::string_view name) {
    const auto [entry, is_new] = names.emplace(std::move(key), name);
    if (!is_new) entry->second = std::string_view();
  }

  std::unordered_map<std::string_view, bool> names_;
  std::unordered_map<std::string_view, std::string_view> by_ending_;
  std::unordered_map<std::string, std::string_view> by_underscored_;
  std::unordered_map<std::string, std::string_view> by_underscored_ending_;
};

}  // namespace

std::vector<Adapter::Unmatched> Adapter::resolve_names(
    const std::vector<std::string>& base_tensors) {
  const BaseNames base(base_tensors);
  const bool is_kohya = naming_ == AdapterNaming::kohya;
  std::vector<Unmatched> unmatched;
  // By what they are in the base: two of one name would both change it, or one would be lost.
  std::unordered_map<std::string, std::string> taken;
  const auto take = [&](const std::string& resolved, const std::string& given) {
    const auto [other, is_new] = taken.emplace(resolved, given);
    if (is_new) return;
    throw_argument_error(
        "lora: " + printable(other->second) + " and " + printable(given) + " of " +
            printable_path(path_.string()) + " are both " + printable(resolved) +
            " of the base, but a tensor of the base is changed by one of them",
        "the adapter is for a model that has both, of which this base is a part or another");
  };
  const auto resolve = [&](std::string& name) {
    const std::string_view found =
        is_kohya && name.find('.') == std::string::npos ? base.underlined(name) : base.dotted(name);
    if (!found.empty()) {
      take(std::string(found), name);
      name = found;
      return;
    }
    const bool is_explained = unmatched.size() < max_explained;
    unmatched.push_back(
        {name, is_explained ? base.closest(name, is_kohya) : std::vector<std::string>()});
  };
  for (AdapterModule& module : modules_) resolve(module.name);
  taken.clear();  // a module and a tensor that is saved whole may share a name
  for (SavedTensor& saved : saved_) resolve(saved.name);
  sort_names();
  return unmatched;
}

}  // namespace eckart
