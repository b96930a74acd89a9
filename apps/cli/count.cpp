// eckart count: parameters, bytes and operations of a model, and what fits a memory.
#include "eckart/model/count.h"

#include "eckart/core/errors.h"
#include "eckart/model/count_tensors.h"
#include "eckart/model/fit.h"
#include "eckart/model/summary.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "console.h"
#include "count_report.h"
#include "json_output.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

struct CommandOptions {
  std::string path;
  Index context = 0;
  Index batch = 1;
  std::optional<Dtype> dtype;
  std::optional<Dtype> kv_dtype;
  std::optional<Dtype> activation_dtype;
  Index lora_rank = 0;
  std::vector<std::string> lora_targets;
  bool train = false;
  std::optional<Index> fit;
};

CountOptions count_options(const CommandOptions& options) {
  CountOptions result{.context = options.context,
                      .batch = options.batch,
                      .train = options.train,
                      .lora_rank = options.lora_rank,
                      .lora_targets = options.lora_targets};
  result.weights_dtype = options.dtype;
  if (options.kv_dtype) result.kv_dtype = *options.kv_dtype;
  if (options.activation_dtype) result.activation_dtype = *options.activation_dtype;
  return result;
}

// Without --dtype a checkpoint's weights take what they take in its file: one dtype, or, where it
// has several or is quantized, so many bytes.
void take_stored_weights(const ModelInput& input, CountOptions& options) {
  if (!input.checkpoint || options.weights_dtype) return;
  std::optional<Dtype> dtype;
  bool is_uniform = true;
  for (const LogicalTensor& tensor : input.tensors) {
    if (tensor.kind != TensorKind::parameter) continue;
    is_uniform = is_uniform && !tensor.is_quantized && dtype.value_or(tensor.dtype) == tensor.dtype;
    dtype = tensor.dtype;
  }
  if (is_uniform && dtype) {
    options.weights_dtype = dtype;
  } else {
    const Summary summary = summarize(input.tensors, &*input.architecture);
    options.stored_weights_bytes = static_cast<Index>(summary.root.bytes);
  }
}

// Options that need to know what the model is, not only what its tensors are.
void refuse_without_architecture(const ModelInput& input, const CommandOptions& options) {
  const bool is_default = options.context == 0 && options.batch == 1 && !options.dtype &&
                          !options.kv_dtype && !options.activation_dtype;
  if (is_default && !options.fit && !options.train && options.lora_targets.empty()) return;
  throw_argument_error(
      "count: only --lora-rank works without an architecture, but " + input.no_architecture,
      input.no_architecture_hint);
}

int count_from_tensors(const ModelInput& input, const CommandOptions& options,
                       const CommonOptions& common) {
  if (!input.checkpoint) {
    throw_argument_error("count: " + input.no_architecture, input.no_architecture_hint);
  }
  refuse_without_architecture(input, options);
  const TensorCount counted = count_tensors(input.tensors, options.lora_rank);
  if (common.json) {
    print_json(to_json(counted, input));
  } else {
    print(tensor_count_text(counted, input));
  }
  return 0;
}

int run_count(const CommandOptions& options, const CommonOptions& common) {
  const ModelInput input = open_model(options.path);
  if (!input.architecture) return count_from_tensors(input, options, common);
  CountOptions chosen = count_options(options);
  take_stored_weights(input, chosen);
  CountReport report{.name = input.name, .architecture = &*input.architecture};
  report.count = count(*input.architecture, chosen);
  if (options.fit) {
    report.fit = fit(*input.architecture, {.bytes = *options.fit,
                                           .context = options.context,
                                           .batch = options.batch,
                                           .weights_dtype = chosen.weights_dtype,
                                           .stored_weights_bytes = chosen.stored_weights_bytes,
                                           .kv_dtype = chosen.kv_dtype,
                                           .activation_dtype = chosen.activation_dtype});
  }
  if (common.json) {
    print_json(to_json(report));
  } else {
    print(count_text(report));
  }
  return 0;
}

void add_options(CLI::App& command, CommandOptions& options) {
  command.add_option("path", options.path, "A model folder, a checkpoint file or a config.json")
      ->required()
      ->type_name("PATH");
  add_number(command,
             {.name = "--context", .effect = "Tokens of a sequence (default: the model's)"},
             options.context);
  add_number(command, {.name = "--batch", .effect = "Sequences at once (default: 1)"},
             options.batch);
  add_dtype(command,
            {.name = "--dtype",
             .effect = "Dtype of the weights (default: as stored; from a config alone its own, or "
                       "BF16)",
             .value = "DTYPE"},
            options.dtype);
  add_dtype(command,
            {.name = "--kv-dtype",
             .effect = "Dtype of the KV cache (default: BF16, 2 bytes)",
             .value = "DTYPE"},
            options.kv_dtype);
  add_dtype(command,
            {.name = "--activation-dtype",
             .effect = "Dtype of the activations (default: BF16)",
             .value = "DTYPE"},
            options.activation_dtype);
  CLI::Option* const rank =
      add_number(command,
                 {.name = "--lora-rank",
                  .effect = "Count the LoRA of this rank on every matrix of attention and MLP",
                  .value = "R"},
                 options.lora_rank);
  command
      .add_option("--lora-targets", options.lora_targets,
                  "Matrices with a LoRA, by role (w_q) or end of name (q_proj), commas between")
      ->type_name("NAMES")
      ->delimiter(',')
      ->needs(rank);
  command.add_flag("--train", options.train,
                   "Count training: FLOPs, gradients, AdamW state, activations");
  add_byte_size(command,
                {.name = "--fit",
                 .effect = "Answer which context and which batch fit this memory: 24GB, 80GiB",
                 .value = "SIZE"},
                options.fit);
}

}  // namespace

void add_count(CommandLine& line) {
  auto options = std::make_shared<CommandOptions>();
  CLI::App* const command = add_command(
      line,
      {.name = "count",
       .summary = "Count parameters, bytes and FLOPs of a model; say what fits a memory",
       .examples = {"eckart count models/all-MiniLM-L6-v2",
                    "eckart count config.json --context 8192 --batch 4 --lora-rank 16 --json",
                    "eckart count config.json --dtype F8_E4M3 --fit 24GB"}},
      [options, &line] { return run_count(*options, line.common); });
  add_options(*command, *options);
}

}  // namespace eckart::cli
