#include "eckart/model/rotary_settings.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <string>

namespace eckart {
namespace {

// The scaling of a config, whichever of its two names it goes by. What `rope_scaling` says goes
// first, as in transformers.
std::optional<Config> scaling_of(const Config& config) {
  if (std::optional<Config> scaling = config.section("rope_scaling")) {
    if (!scaling->keys().empty()) return scaling;
  }
  return config.section("rope_parameters");
}

RotaryScaling scaling_named(const std::string& name, const Architecture& architecture,
                            const Config& config) {
  if (name == "default") return RotaryScaling::none;
  // Phi-3's first files say `su` and mean what is now called longrope; so do its `yarn`.
  if (name == "longrope" || name == "su") return RotaryScaling::longrope;
  if (name == "yarn") {
    return architecture.family == "phi3" ? RotaryScaling::longrope : RotaryScaling::yarn;
  }
  if (name == "linear") return RotaryScaling::linear;
  if (name == "dynamic") return RotaryScaling::dynamic_ntk;
  if (name == "llama3") return RotaryScaling::llama3;
  throw_argument_error("rotary: " + config.source() + " scales positions by \"" +
                           printable(name, 60) + "\", but that scaling is not known",
                       "known are default, linear, dynamic, yarn, longrope and llama3");
}

double required(const Config& scaling, std::string_view name, const std::string& type) {
  if (const std::optional<double> value = scaling.number({name})) return *value;
  throw_format_error(scaling.source(), std::nullopt,
                     scaling.source() + ": " + std::string(name) + " is missing, but the scaling " +
                         type + " has no meaning without it");
}

// The context that the positions were first trained for.
Index original_context(const Config& config, const Config& scaling,
                       const Architecture& architecture) {
  if (const auto own = config.size({"original_max_position_embeddings"})) return *own;
  // The default of Phi-3's configs, which keep it outside of the scaling.
  if (architecture.family == "phi3") return 4096;
  return scaling.size({"original_max_position_embeddings"}).value_or(architecture.context);
}

std::vector<double> factors(const Config& scaling, std::string_view name, Index n_pairs) {
  std::vector<double> list = scaling.numbers({name});
  if (static_cast<Index>(list.size()) != n_pairs) {
    throw_format_error(scaling.source(), std::nullopt,
                       scaling.source() + ": " + std::string(name) + " has " +
                           std::to_string(list.size()) + " entries, but the " +
                           std::to_string(n_pairs) + " pairs that are turned take one each");
  }
  return list;
}

void read_scaling(const Config& config, const Config& scaling, const std::string& type,
                  const Architecture& architecture, RotaryOptions& rotary) {
  rotary.original_context = original_context(config, scaling, architecture);
  const double stretched =
      static_cast<double>(architecture.context) / static_cast<double>(rotary.original_context);
  switch (rotary.scaling) {
    case RotaryScaling::none:
    case RotaryScaling::ntk:
      return;
    case RotaryScaling::linear:
      rotary.factor = required(scaling, "factor", type);
      return;
    case RotaryScaling::dynamic_ntk:
      rotary.factor = required(scaling, "factor", type);
      rotary.original_context = architecture.context;
      return;
    case RotaryScaling::llama3:
      rotary.factor = required(scaling, "factor", type);
      rotary.low_frequency_factor = required(scaling, "low_freq_factor", type);
      rotary.high_frequency_factor = required(scaling, "high_freq_factor", type);
      return;
    case RotaryScaling::yarn:
      rotary.factor = scaling.number({"factor"}).value_or(stretched);
      rotary.attention_factor = scaling.number({"attention_factor"}).value_or(0);
      rotary.mscale = scaling.number({"mscale"}).value_or(0);
      rotary.mscale_all_dim = scaling.number({"mscale_all_dim"}).value_or(0);
      rotary.truncates = scaling.boolean({"truncate"}).value_or(true);
      if (const auto fast = scaling.number({"beta_fast"}); fast && *fast != 0) {
        rotary.beta_fast = *fast;
      }
      if (const auto slow = scaling.number({"beta_slow"}); slow && *slow != 0) {
        rotary.beta_slow = *slow;
      }
      return;
    case RotaryScaling::longrope: {
      const Index turned = rotary.d_rotary == 0 ? architecture.d_head : rotary.d_rotary;
      rotary.factor = scaling.number({"factor"}).value_or(stretched);
      rotary.attention_factor = scaling.number({"attention_factor"}).value_or(0);
      rotary.short_factors = factors(scaling, "short_factor", turned / 2);
      rotary.long_factors = factors(scaling, "long_factor", turned / 2);
      return;
    }
  }
}

}  // namespace

RotaryOptions read_rotary(const Config& config, const Architecture& architecture) {
  RotaryOptions rotary;
  rotary.d_rotary = architecture.d_rotary;
  const std::optional<Config> scaling = scaling_of(config);
  std::optional<double> base;
  if (scaling) base = scaling->number({"rope_theta"});
  if (!base) base = config.number({"rotary_emb_base", "rope_theta"});
  rotary.base = base.value_or(10'000);
  if (!scaling) return rotary;
  const std::string type = scaling->text({"rope_type", "type"}).value_or("default");
  rotary.scaling = scaling_named(type, architecture, config);
  read_scaling(config, *scaling, type, architecture, rotary);
  return rotary;
}

}  // namespace eckart
