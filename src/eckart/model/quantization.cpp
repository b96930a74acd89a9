#include "eckart/model/quantization.h"

#include <string_view>

namespace eckart {
namespace {

// Read as a number, not as a size: a group size of -1 stands for a whole row.
Index positive(const Config& config, Config::Names names) {
  constexpr double largest = 1 << 20;
  const double value = config.number(names).value_or(0);
  return value > 0 && value <= largest ? static_cast<Index>(value) : 0;
}

// compressed-tensors describes groups of modules; the weights of the first one stand for all.
Config weights_of(const Config& config) {
  const std::optional<Config> groups = config.section("config_groups");
  if (!groups) return config;
  const std::optional<Config> group = groups->section("group_0");
  if (!group) return config;
  return group->section("weights").value_or(config);
}

std::string method_of(const Config& config, std::string_view fallback) {
  return config.text({"quant_method"}).value_or(std::string(fallback));
}

}  // namespace

std::optional<Quantization> read_quantization(const Config& config) {
  std::optional<Config> section = config.section("quantization_config");
  std::string_view fallback = "unnamed";
  if (!section) {
    section = config.section("compression_config");
    fallback = "compressed-tensors";
  }
  if (!section) {
    section = config.section("quantization");
    fallback = "mlx";
  }
  if (!section) return std::nullopt;
  const Config weights = weights_of(*section);
  Quantization quantization;
  quantization.method = method_of(*section, fallback);
  quantization.bits = positive(weights, {"bits", "w_bit", "num_bits"});
  quantization.group_size = positive(weights, {"group_size", "q_group_size"});
  quantization.type = section->text({"bnb_4bit_quant_type", "quant_algo"}).value_or("");
  if (section->boolean({"load_in_4bit", "_load_in_4bit"}).value_or(false)) quantization.bits = 4;
  if (section->boolean({"load_in_8bit", "_load_in_8bit"}).value_or(false)) quantization.bits = 8;
  return quantization;
}

}  // namespace eckart
