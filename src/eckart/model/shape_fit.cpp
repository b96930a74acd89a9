#include "eckart/model/shape_fit.h"

#include "eckart/model/prose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

namespace eckart {
namespace {

enum class Number {
  d_model,
  n_heads,
  n_kv_heads,
  d_head,
  d_head_v,
  d_inner,
  n_vocab,
  context,
  n_experts
};
constexpr std::size_t n_numbers = 9;
// Double: sizes of a hostile config multiply beyond 63 bits; real ones are exact below 2^53.
using Numbers = std::array<double, n_numbers>;

double& at(Numbers& numbers, Number number) { return numbers[static_cast<std::size_t>(number)]; }
double at(const Numbers& numbers, Number number) {
  return numbers[static_cast<std::size_t>(number)];
}

// The width inside the MLP that a line belongs to.
Index inner_width(const Architecture& arch, const TensorSpec& spec) {
  switch (spec.component) {
    case Component::experts:
      return arch.d_expert;
    case Component::shared_experts:
      return arch.d_shared_expert;
    default:
      return arch.d_ff;
  }
}

Numbers numbers_of(const Architecture& arch, const TensorSpec& spec) {
  Numbers numbers{};
  const auto set = [&](Number number, Index value) {
    at(numbers, number) = static_cast<double>(value);
  };
  set(Number::d_model, arch.d_model);
  set(Number::n_heads, arch.n_heads);
  set(Number::n_kv_heads, arch.n_kv_heads);
  set(Number::d_head, arch.d_head);
  set(Number::d_head_v, arch.d_head_v);
  set(Number::d_inner, inner_width(arch, spec));
  set(Number::n_vocab, arch.n_vocab);
  set(Number::context, arch.context);
  set(Number::n_experts, arch.n_experts);
  return numbers;
}

std::string name_of(Number number, const TensorSpec& spec) {
  switch (number) {
    case Number::d_model:
      return "d_model";
    case Number::n_heads:
      return "n_heads";
    case Number::n_kv_heads:
      return "n_kv_heads";
    case Number::d_head:
      return "d_head";
    case Number::d_head_v:
      return "d_head_v";
    case Number::d_inner:
      return spec.component == Component::experts          ? "d_expert"
             : spec.component == Component::shared_experts ? "d_shared"
                                                           : "d_ff";
    case Number::n_vocab:
      return "n_vocab";
    case Number::context:
      return "context";
    case Number::n_experts:
      return "n_experts";
  }
  return "";
}

// The size of an axis by its name (see architecture.h); nothing for one that no number here makes.
std::optional<double> formula(std::string_view axis, const Numbers& n) {
  const auto of = [&](Number number) { return at(n, number); };
  if (axis == "d_model") return of(Number::d_model);
  if (axis == "vocab") return of(Number::n_vocab);
  if (axis == "position") return of(Number::context);
  if (axis == "heads") return of(Number::n_heads) * of(Number::d_head);
  if (axis == "kv_heads") return of(Number::n_kv_heads) * of(Number::d_head);
  if (axis == "v_heads") return of(Number::n_heads) * of(Number::d_head_v);
  if (axis == "qkv") {
    return (of(Number::n_heads) + 2 * of(Number::n_kv_heads)) * of(Number::d_head);
  }
  if (axis == "d_head") return of(Number::d_head);
  if (axis == "head") return of(Number::n_heads);
  if (axis == "d_ff" || axis == "d_expert" || axis == "d_shared") return of(Number::d_inner);
  if (axis == "gate_up") return 2 * of(Number::d_inner);
  if (axis == "expert") return of(Number::n_experts);
  return std::nullopt;
}

// The shape of a line under other numbers. An axis keeps the distance that the table has from its
// formula: RoBERTa's position table has two rows more than the context.
std::vector<double> sizes_under(const TensorSpec& spec, const Numbers& current,
                                const Numbers& changed) {
  std::vector<double> sizes;
  for (Index axis = 0; axis < spec.shape.rank(); ++axis) {
    const std::string& name = spec.shape.name(axis);
    double size = static_cast<double>(spec.shape.size(axis));
    const std::optional<double> before = formula(name, current);
    const std::optional<double> after = formula(name, changed);
    if (before && after) size += *after - *before;
    sizes.push_back(size);
  }
  return sizes;
}

bool fits(const FoundShape& found, const Numbers& current, const Numbers& changed) {
  const std::vector<double> sizes = sizes_under(*found.spec, current, changed);
  if (static_cast<Index>(sizes.size()) != found.shape.rank()) return false;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != static_cast<double>(found.shape.size(static_cast<Index>(axis)))) {
      return false;
    }
  }
  return true;
}

struct Change {
  Number number;
  std::vector<Number> along;  // numbers that follow it
};

// Numbers that are one number in most configs change together.
std::vector<Change> possible_changes(const Architecture& arch) {
  std::vector<Change> changes = {
      {Number::d_head, {}},  {Number::n_heads, {}},   {Number::n_kv_heads, {}},
      {Number::d_model, {}}, {Number::d_inner, {}},   {Number::n_vocab, {}},
      {Number::context, {}}, {Number::n_experts, {}}, {Number::d_head_v, {}},
  };
  if (arch.d_head_v == arch.d_head) {
    changes.front().along = {Number::d_head_v};
    changes.pop_back();
  }
  if (arch.n_kv_heads == arch.n_heads) changes[1].along = {Number::n_kv_heads};
  return changes;
}

Numbers changed_to(const Numbers& current, const Change& change, double value) {
  Numbers changed = current;
  at(changed, change.number) = value;
  for (const Number number : change.along) at(changed, number) = value;
  return changed;
}

// The value of one number with which the first contradicted axis fits: every formula is a straight
// line in each number.
std::optional<double> solve(const FoundShape& found, const Numbers& current, const Change& change) {
  const std::vector<double> at_zero =
      sizes_under(*found.spec, current, changed_to(current, change, 0));
  const std::vector<double> at_one =
      sizes_under(*found.spec, current, changed_to(current, change, 1));
  for (std::size_t axis = 0; axis < at_zero.size(); ++axis) {
    const double slope = at_one[axis] - at_zero[axis];
    const double wanted = static_cast<double>(found.shape.size(static_cast<Index>(axis)));
    if (slope <= 0 || found.spec->shape.sizes()[axis] == found.shape.sizes()[axis]) continue;
    const double value = (wanted - at_zero[axis]) / slope;
    // Beyond 2^53 a quotient of two sizes is no whole number that is known exactly.
    const bool is_whole = value >= 1 && value < 0x1p53 && value == std::floor(value);
    if (is_whole) return value;
    return std::nullopt;
  }
  return std::nullopt;
}

bool is_transposed(const Shape& a, const Shape& b) {
  if (a.rank() < 2 || a.rank() != b.rank() || same_sizes(a, b)) return false;
  std::vector<Index> sizes = a.sizes();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return sizes == b.sizes();
}

struct ConfigKey {
  std::string_view family;  // empty: those that are not listed
  std::string_view number;
  std::string_view key;  // empty: the config has none, the number follows from others
};

constexpr std::array<ConfigKey, 37> config_keys = {{
    {"gpt2", "d_model", "n_embd"},
    {"gpt2", "n_layers", "n_layer"},
    {"gpt2", "n_heads", "n_head"},
    {"gpt2", "n_kv_heads", ""},
    {"gpt2", "d_head", ""},
    {"gpt2", "d_ff", "n_inner"},
    {"gpt2", "context", "n_positions"},
    {"bloom", "n_layers", "n_layer"},
    {"bloom", "n_heads", "n_head"},
    {"bloom", "n_kv_heads", ""},
    {"bloom", "d_head", ""},
    {"bloom", "d_ff", ""},
    {"distilbert", "d_model", "dim"},
    {"distilbert", "n_layers", ""},
    {"distilbert", "n_heads", ""},
    {"distilbert", "n_kv_heads", ""},
    {"distilbert", "d_head", ""},
    {"distilbert", "d_ff", "hidden_dim"},
    {"bert", "d_head", ""},
    {"roberta", "d_head", ""},
    {"gpt_neox", "d_head", ""},
    {"phi", "d_head", ""},
    {"deepseek_v2", "d_head", ""},
    {"deepseek_v3", "d_head", ""},
    {"mixtral", "n_experts", "num_local_experts"},
    {"mixtral", "d_expert", "intermediate_size"},
    {"gpt_oss", "n_experts", "num_local_experts"},
    {"", "d_model", "hidden_size"},
    {"", "n_layers", "num_hidden_layers"},
    {"", "n_heads", "num_attention_heads"},
    {"", "n_kv_heads", "num_key_value_heads"},
    {"", "d_head", "head_dim"},
    {"", "d_ff", "intermediate_size"},
    {"", "d_expert", "moe_intermediate_size"},
    {"", "n_vocab", "vocab_size"},
    {"", "context", "max_position_embeddings"},
    {"", "n_experts", "num_experts"},
}};

// What a number is called in the configs of a family, where they have it.
std::string_view config_key(std::string_view family, std::string_view number) {
  for (const ConfigKey& key : config_keys) {
    if (key.number == number && (key.family.empty() || key.family == family)) return key.key;
  }
  return {};
}

std::string with_value(const Numbers& numbers, Number number, const TensorSpec& spec) {
  return name_of(number, spec) + ' ' + std::to_string(static_cast<Index>(at(numbers, number)));
}

}  // namespace

std::vector<ConfigFit> shape_fits(const Architecture& architecture, const FoundShape& found,
                                  const std::vector<FoundShape>& others) {
  std::vector<ConfigFit> alone;
  std::vector<ConfigFit> with_others;
  if (found.shape.rank() != found.spec->shape.rank()) return alone;
  const Numbers current = numbers_of(architecture, *found.spec);
  for (const Change& change : possible_changes(architecture)) {
    const std::optional<double> value = solve(found, current, change);
    if (!value) continue;
    const Numbers changed = changed_to(current, change, *value);
    if (!fits(found, current, changed)) continue;
    const ConfigFit fit = {name_of(change.number, *found.spec),
                           static_cast<Index>(at(current, change.number)),
                           static_cast<Index>(*value)};
    alone.push_back(fit);
    const bool fits_others =
        std::all_of(others.begin(), others.end(), [&](const FoundShape& other) {
          return other.spec->component != found.spec->component || fits(other, current, changed);
        });
    if (fits_others) with_others.push_back(fit);
  }
  return with_others.empty() ? alone : with_others;
}

std::string axis_origin(const Architecture& architecture, const FoundShape& found) {
  const TensorSpec& spec = *found.spec;
  if (found.shape.rank() != spec.shape.rank()) return {};
  const Numbers n = numbers_of(architecture, spec);
  for (Index axis = 0; axis < spec.shape.rank(); ++axis) {
    if (spec.shape.size(axis) == found.shape.size(axis)) continue;
    const std::string& name = spec.shape.name(axis);
    const std::string heads = with_value(n, Number::n_heads, spec);
    const std::string kv_heads = with_value(n, Number::n_kv_heads, spec);
    const std::string d_head = with_value(n, Number::d_head, spec);
    if (name == "heads") return "heads is " + heads + " x " + d_head;
    if (name == "kv_heads") return "kv_heads is " + kv_heads + " x " + d_head;
    if (name == "v_heads") {
      return "v_heads is " + heads + " x " + with_value(n, Number::d_head_v, spec);
    }
    if (name == "qkv") return "qkv is (" + heads + " + 2 x " + kv_heads + ") x " + d_head;
    if (name == "gate_up") return "gate_up is 2 x " + with_value(n, Number::d_inner, spec);
    return {};
  }
  return {};
}

std::string number_in_config(const Architecture& architecture, const std::string& number) {
  const std::string_view key = config_key(architecture.family, number);
  return key.empty() ? number : number + " (" + std::string(key) + ")";
}

std::string fit_in_words(const Architecture& architecture, const FoundShape& found,
                         const std::vector<FoundShape>& others) {
  if (is_transposed(found.spec->shape, found.shape)) {
    return "that is the expected shape transposed: the matrix is stored " +
           std::string(found.spec->input_first ? "output" : "input") + " axis first";
  }
  std::vector<std::string> fits;
  for (const ConfigFit& fit : shape_fits(architecture, found, others)) {
    fits.push_back(number_in_config(architecture, fit.number) + ' ' + std::to_string(fit.value) +
                   " instead of " + std::to_string(fit.current));
  }
  if (fits.empty()) return {};
  return "the file fits " + listed(fits, "or");
}

}  // namespace eckart
