#include "eckart/model/match_specs.h"

#include "eckart/core/parallel.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <unordered_map>
#include <utility>

namespace eckart {
namespace {

constexpr Index layer_slot = -1;
constexpr Index expert_slot = -2;

// A name that a line may have in a file.
struct Candidate {
  SpecMatch match;           // what it is if the numbers fit
  std::vector<Index> slots;  // for each number: a literal number, layer_slot or expert_slot
};

class Matcher {
 public:
  explicit Matcher(const Architecture& architecture) : specs_(architecture.tensors) {
    // The likelier reading of a name comes first: the table's own, then the prefix, then old names.
    add_all(&Matcher::add_plain, architecture.base_prefix);
    add_all(&Matcher::add_prefixed, architecture.base_prefix);
    add_all(&Matcher::add_old, architecture.base_prefix);
  }

  /// `parts` is what is reused between calls.
  SpecMatch find(std::string_view name, NameTemplate& parts) const {
    read_name_template(name, parts);
    const auto candidates = by_template_.find(parts.text);
    SpecMatch best;
    if (candidates == by_template_.end()) return best;
    for (const Candidate& candidate : candidates->second) {
      const std::optional<SpecMatch> match = fill(candidate, parts.numbers);
      if (!match || (best.spec >= 0 && !match->is_in_table)) continue;
      best = *match;
      if (best.is_in_table) break;
    }
    return best;
  }

 private:
  using AddName = void (Matcher::*)(std::int32_t, const std::string&);

  void add_all(AddName add_name, const std::string& base_prefix) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      (this->*add_name)(static_cast<std::int32_t>(i), base_prefix);
    }
  }

  void add_plain(std::int32_t spec, const std::string& /*base_prefix*/) {
    add(name_of(spec), {.spec = spec});
  }

  void add_prefixed(std::int32_t spec, const std::string& base_prefix) {
    if (base_prefix.empty()) return;
    const std::string& name = name_of(spec);
    if (name.starts_with(base_prefix)) {
      add(name.substr(base_prefix.size()), {.spec = spec, .lacks_prefix = true});
    } else {
      add(base_prefix + name, {.spec = spec, .adds_prefix = true});
    }
  }

  void add_old(std::int32_t spec, const std::string& base_prefix) {
    for (const std::string& name : specs_[static_cast<std::size_t>(spec)].also_named) {
      add(name, {.spec = spec, .is_old_name = true});
      if (base_prefix.empty()) continue;
      if (name.starts_with(base_prefix)) {
        add(name.substr(base_prefix.size()),
            {.spec = spec, .is_old_name = true, .lacks_prefix = true});
      } else {
        add(base_prefix + name, {.spec = spec, .is_old_name = true, .adds_prefix = true});
      }
    }
  }

  const std::string& name_of(std::int32_t spec) const {
    return specs_[static_cast<std::size_t>(spec)].name;
  }

  void add(std::string_view name, const SpecMatch& match) {
    Candidate candidate{match, {}};
    std::string text;
    for (std::size_t begin = 0; begin <= name.size();) {
      const std::size_t end = std::min(name.find('.', begin), name.size());
      const std::string_view part = name.substr(begin, end - begin);
      if (begin > 0) text += '.';
      const Index slot = slot_of(part);
      if (slot == none) {
        text += part;
      } else {
        text += number_mark;
        candidate.slots.push_back(slot);
      }
      begin = end + 1;
    }
    by_template_[text].push_back(std::move(candidate));
  }

  static constexpr Index none = -3;

  static Index slot_of(std::string_view part) {
    if (part == "{layer}") return layer_slot;
    if (part == "{expert}") return expert_slot;
    const Index number = name_number(part);
    return number < 0 ? none : number;
  }

  std::optional<SpecMatch> fill(const Candidate& candidate,
                                const std::vector<Index>& numbers) const {
    if (candidate.slots.size() != numbers.size()) return std::nullopt;
    SpecMatch match = candidate.match;
    for (std::size_t i = 0; i < candidate.slots.size(); ++i) {
      const Index slot = candidate.slots[i];
      if (slot == layer_slot) {
        match.layer = numbers[i];
      } else if (slot == expert_slot) {
        match.expert = numbers[i];
      } else if (slot != numbers[i]) {
        return std::nullopt;
      }
    }
    const TensorSpec& spec = specs_[static_cast<std::size_t>(match.spec)];
    const bool has_layer =
        match.layer < 0 || std::binary_search(spec.layers.begin(), spec.layers.end(), match.layer);
    match.is_in_table = has_layer && match.expert < spec.n_experts;
    return match;
  }

  const std::vector<TensorSpec>& specs_;
  // Only the table's own names are put in, so that a file can't make them collide.
  std::unordered_map<std::string, std::vector<Candidate>> by_template_;
};

// What stands before the token embedding's name in some name of the list.
std::string find_foreign_prefix(const Architecture& architecture,
                                const std::vector<std::string_view>& names) {
  const auto embedding =
      std::find_if(architecture.tensors.begin(), architecture.tensors.end(),
                   [](const TensorSpec& spec) { return spec.role == Role::token_embedding; });
  if (embedding == architecture.tensors.end()) return {};
  std::string_view wanted = embedding->name;
  if (wanted.starts_with(architecture.base_prefix)) {
    wanted.remove_prefix(architecture.base_prefix.size());
  }
  for (const std::string_view name : names) {
    if (name.size() <= wanted.size() || !name.ends_with(wanted)) continue;
    std::string_view prefix = name.substr(0, name.size() - wanted.size());
    if (prefix.back() != '.') continue;
    if (prefix.ends_with(architecture.base_prefix)) {
      prefix.remove_suffix(architecture.base_prefix.size());
    }
    return std::string(prefix);
  }
  return {};
}

}  // namespace

SpecMatches match_specs(const Architecture& architecture,
                        const std::vector<std::string_view>& names) {
  const Matcher matcher(architecture);
  SpecMatches matches;
  matches.of.resize(names.size());
  constexpr Index grain = 8192;  // of half a million names
  parallel_for(static_cast<Index>(names.size()), grain, [&](Index begin, Index end) {
    NameTemplate parts;
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      matches.of[i] = matcher.find(names[i], parts);
    }
  });
  const bool has_embedding =
      std::any_of(matches.of.begin(), matches.of.end(), [&](const SpecMatch& match) {
        return match.spec >= 0 && architecture.tensors[static_cast<std::size_t>(match.spec)].role ==
                                      Role::token_embedding;
      });
  if (has_embedding) return matches;
  matches.foreign_prefix = find_foreign_prefix(architecture, names);
  if (matches.foreign_prefix.empty()) return matches;
  NameTemplate parts;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (matches.of[i].spec >= 0 || !names[i].starts_with(matches.foreign_prefix)) continue;
    matches.of[i] = matcher.find(names[i].substr(matches.foreign_prefix.size()), parts);
  }
  return matches;
}

SpecMatches match_specs(const Architecture& architecture,
                        const std::vector<LogicalTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const LogicalTensor& tensor : tensors) names.emplace_back(tensor.name);
  return match_specs(architecture, names);
}

}  // namespace eckart
