// An adapter that a command is given, and the base whose names it is to have.
#pragma once

#include "eckart/lora/adapter.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "json_output.h"

namespace CLI {
class App;
}

namespace eckart::cli {

/// What the help of a command says of such an argument.
inline constexpr std::string_view adapter_help =
    "An adapter: a folder of PEFT's or MLX's, or a .safetensors file of kohya's";

/// `self_attn.q_proj (closest: model.layers.0.self_attn.q_proj, …)`, one a line, at most ten.
std::string unmatched_text(const std::vector<Adapter::Unmatched>& unmatched);
Json unmatched_json(const std::vector<Adapter::Unmatched>& unmatched);

/// `warning  tensor "x": message`, one a line.
std::string warnings_text(const Adapter& adapter);
Json warnings_json(const Adapter& adapter);

/// Gives the adapters' modules the names that the base at `path` has for them. Throws for a name that
/// fits none of its tensors, with the closest.
void take_names_of_base(std::vector<Adapter>& adapters, const std::string& path);

/// `--weights 1,0.5`: finite numbers, one an adapter.
void add_weights(CLI::App& app, std::vector<double>& weights);
/// Throws UsageError unless there are none or as many as adapters.
void check_weights(const std::vector<double>& weights, std::size_t n_adapters);

/// The name of the folder or file.
std::string adapter_title(const Adapter& adapter);

}  // namespace eckart::cli
