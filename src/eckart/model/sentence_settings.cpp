#include "eckart/model/sentence_settings.h"

#include "eckart/core/errors.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/model/config.h"

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

namespace eckart {
namespace {

namespace fs = std::filesystem;

struct PoolingField {
  std::string_view field;
  std::string_view name;
  Pooling pooling;
};

// In the order in which several stand side by side.
constexpr std::array<PoolingField, 6> pooling_fields = {{
    {"pooling_mode_cls_token", "cls", Pooling::cls},
    {"pooling_mode_max_tokens", "max", Pooling::max},
    {"pooling_mode_mean_tokens", "mean", Pooling::mean},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt", Pooling::mean_sqrt},
    {"pooling_mode_weightedmean_tokens", "weighted_mean", Pooling::weighted_mean},
    {"pooling_mode_lasttoken", "last", Pooling::last},
}};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<Pooling> read_poolings(const fs::path& file) {
  const Config config = load_config(file);
  std::vector<Pooling> poolings;
  for (const PoolingField& one : pooling_fields) {
    if (config.boolean({one.field}).value_or(false)) poolings.push_back(one.pooling);
  }
  // Newer files name one mode.
  const std::optional<std::string> mode = config.text({"pooling_mode"});
  for (const PoolingField& one : pooling_fields) {
    const bool is_named =
        mode && (*mode == one.name || (*mode == "lasttoken" && one.name == "last") ||
                 (*mode == "mean_sqrt_len_tokens" && one.name == "mean_sqrt") ||
                 (*mode == "weightedmean" && one.name == "weighted_mean"));
    if (is_named && poolings.empty()) poolings.push_back(one.pooling);
  }
  if (poolings.empty()) {
    throw_argument_error("embed: " + config.source() + " names no pooling that is known",
                         "known are cls, max, mean, mean_sqrt_len, weightedmean and lasttoken");
  }
  return poolings;
}

std::optional<Activation> dense_activation(const Config& config) {
  const std::string name = config.text({"activation_function"}).value_or(std::string());
  const std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
  if (last.empty() || last == "Identity") return std::nullopt;
  if (last == "Tanh") return Activation::tanh;
  if (last == "ReLU") return Activation::relu;
  if (last == "GELU") return Activation::gelu;
  if (last == "SiLU") return Activation::silu;
  if (last == "Sigmoid") return Activation::sigmoid;
  throw_argument_error("embed: the activation of " + config.source() + " is \"" +
                           printable(name, 80) + "\", but that one is not known",
                       "known are Identity, Tanh, ReLU, GELU, SiLU and Sigmoid");
}

void check_dense(const Config& config, const SentenceStep& step) {
  const auto check_size = [&](std::string_view field, Index found) {
    const std::optional<Index> stated = config.size({field});
    if (!stated || *stated == found) return;
    throw_argument_error("embed: " + config.source() + ": " + std::string(field) + " is " +
                         std::to_string(*stated) + ", but linear.weight has " +
                         std::to_string(found));
  };
  check_size("in_features", step.w->size(0));
  check_size("out_features", step.w->size(1));
  if (config.boolean({"bias"}).value_or(false) && !step.b) {
    throw_argument_error("embed: " + config.source() +
                         ": the layer has a bias, but its file has no linear.bias");
  }
}

SentenceStep read_dense(const fs::path& folder) {
  const Config config = load_config(folder);
  const Checkpoint checkpoint = open_checkpoint(folder);
  SentenceStep step;
  const Tensor<float> stored = checkpoint.tensor<float>("linear.weight");
  if (stored.rank() != 2) {
    throw_shape_error("embed: linear.weight of " + printable_path(folder.string()) + " is " +
                      to_string(stored.shape()) + ", but must be a matrix");
  }
  step.w = Tensor<float>(stored.view().transpose());
  if (checkpoint.find("linear.bias") != nullptr) {
    step.b = checkpoint.tensor<float>("linear.bias");
  }
  check_dense(config, step);
  step.activation = dense_activation(config);
  return step;
}

// The modules of a list that anybody may have written: paths stay in the folder.
fs::path module_folder(const fs::path& folder, const Config& module) {
  const fs::path path = module.text({"path"}).value_or(std::string());
  const bool leaves =
      path.is_absolute() || std::find(path.begin(), path.end(), fs::path("..")) != path.end();
  if (leaves) {
    throw_format_error(module.source(), std::nullopt,
                       printable_path(module.source()) + ": the path of a module is \"" +
                           printable(path.string(), 80) + "\", but must lie in the folder");
  }
  return folder / path;
}

// The names that sentence-transformers has had for the settings of its first module.
constexpr std::array<std::string_view, 7> transformer_files = {
    "sentence_bert_config.json",       "sentence_roberta_config.json",
    "sentence_distilbert_config.json", "sentence_camembert_config.json",
    "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json"};

void read_transformer(const fs::path& folder, SentenceSettings& settings) {
  for (const std::string_view name : transformer_files) {
    if (!is_file(folder / name)) continue;
    const Config config = load_config(folder / name);
    settings.max_tokens = config.size({"max_seq_length"}).value_or(0);
    settings.lower_cases = config.boolean({"do_lower_case"}).value_or(false);
    return;
  }
}

// The text that the folder wants in front of every other unless another is asked for.
void read_prompts(const fs::path& folder, SentenceSettings& settings) {
  const fs::path file = folder / "config_sentence_transformers.json";
  if (!is_file(file)) return;
  const Config config = load_config(file);
  const std::optional<std::string> name = config.text({"default_prompt_name"});
  if (!name) return;
  const std::optional<Config> prompts = config.section("prompts");
  const std::optional<std::string> prompt =
      prompts ? prompts->text({std::string_view(*name)}) : std::nullopt;
  if (!prompt) {
    throw_argument_error("embed: " + config.source() + " takes the prompt \"" +
                         printable(*name, 80) + "\", but has none of that name");
  }
  settings.prompt = *prompt;
}

void add_module(const fs::path& folder, const Config& module, SentenceSettings& settings) {
  const std::string type = module.text({"type"}).value_or(std::string());
  const std::string_view kind = std::string_view(type).substr(type.rfind('.') + 1);
  const fs::path path = module_folder(folder, module);
  if (kind == "Transformer") {
    if (path.lexically_normal() == (folder / "").lexically_normal()) return;
    throw_argument_error("embed: " + module.source() + " has its model in " +
                             printable_path(path.string()) +
                             ", but a model is taken from the folder itself",
                         "give that folder, with --pooling and --normalize");
  }
  if (kind == "Pooling") {
    settings.poolings = read_poolings(path);
    settings.pools_prompt = load_config(path).boolean({"include_prompt"}).value_or(true);
  } else if (kind == "Normalize") {
    settings.steps.emplace_back();
  } else if (kind == "Dense") {
    settings.steps.push_back(read_dense(path));
  } else {
    throw_argument_error("embed: " + module.source() + " has a module of the type \"" +
                             printable(type, 80) + "\", but that one is not known",
                         "known are Transformer, Pooling, Dense and Normalize");
  }
}

}  // namespace

bool SentenceSettings::normalizes() const { return !steps.empty() && !steps.back().w; }

SentenceSettings read_sentence_settings(const std::filesystem::path& folder) {
  SentenceSettings settings;
  read_transformer(folder, settings);
  const fs::path file = folder / "modules.json";
  if (!is_file(file)) return settings;
  settings.is_from_folder = true;
  settings.poolings.clear();
  read_prompts(folder, settings);
  const MappedFile mapped = open_mapped(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                              mapped.bytes().size());
  const Config list = parse_config_list(text, "modules", mapped.path());
  for (const Config& module : list.sections("modules")) add_module(folder, module, settings);
  return settings;
}

std::string_view to_string(Pooling pooling) {
  for (const PoolingField& one : pooling_fields) {
    if (one.pooling == pooling) return one.name;
  }
  return "";
}

}  // namespace eckart
