// eckart inspect: what is in a checkpoint, and whether its three sources agree.
#include "eckart/io/scan.h"
#include "eckart/model/checkpoint_spectrum.h"
#include "eckart/model/cross_check.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/summary.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "console.h"
#include "inspect_json.h"
#include "inspect_report.h"
#include "json_output.h"
#include "model_input.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct InspectOptions {
  std::string path;
  bool tensors = false;
  bool values = false;
  bool spectrum = false;
};

// Of each line of the table, the share of its experts that a token uses. Tensors that no line knows
// are used by every token.
Index active_parameters_of(const Inspection& inspection, const SpecMatches& matches) {
  const std::vector<LogicalTensor>& tensors = inspection.input.tensors;
  const Index total = inspection.summary.root.parameters;
  if (!inspection.input.architecture) return total;
  const Architecture& architecture = *inspection.input.architecture;
  std::vector<Index> idle(architecture.tensors.size(), 0);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SpecMatch& match = matches.of[i];
    if (match.spec < 0 || !match.is_in_table) continue;
    idle[static_cast<std::size_t>(match.spec)] += tensors[i].parameters;
  }
  Index active = total;
  for (std::size_t i = 0; i < idle.size(); ++i) {
    const TensorSpec& spec = architecture.tensors[i];
    if (spec.n_experts > spec.n_active_experts && !spec.is_extra) {
      active -= idle[i] / spec.n_experts * (spec.n_experts - spec.n_active_experts);
    }
  }
  return active;
}

std::vector<TensorValues> scan_all(const Checkpoint& checkpoint, bool quiet) {
  std::vector<TensorValues> found;
  Progress progress("values", checkpoint.tensor_bytes(), quiet);
  // File order keeps the disk reading forward.
  for (const SafetensorsFile& shard : checkpoint.shards()) {
    for (const StoredTensor& tensor : shard.tensors()) {
      const ValueScan scan = scan_file_values(shard.file(), tensor.dtype, tensor.begin, tensor.end);
      found.push_back({&tensor, scan});
      progress.advance(tensor.bytes());
    }
  }
  return found;
}

// What config.json ties and the file holds twice, byte by byte.
std::vector<TiedValues> compare_tied(const ModelInput& input, const SpecMatches& matches) {
  std::vector<TiedValues> found;
  if (!input.architecture) return found;
  const std::vector<TensorSpec>& table = input.architecture->tensors;
  const StoredList stored = stored_list(*input.checkpoint);
  const auto stored_of = [&](std::size_t i) { return stored[input.tensors[i].values]; };
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    const std::int32_t spec = matches.of[i].spec;
    if (spec < 0 || table[static_cast<std::size_t>(spec)].tied_to.empty()) continue;
    const std::string& target = table[static_cast<std::size_t>(spec)].tied_to;
    for (std::size_t j = 0; j < input.tensors.size(); ++j) {
      const std::int32_t other = matches.of[j].spec;
      if (other < 0 || table[static_cast<std::size_t>(other)].name != target) continue;
      const StoredTensor* const a = stored_of(i);
      const StoredTensor* const b = stored_of(j);
      const auto bytes_a = input.checkpoint->bytes(a->name);
      const auto bytes_b = input.checkpoint->bytes(b->name);
      found.push_back({a, b,
                       a->dtype == b->dtype && std::equal(bytes_a.begin(), bytes_a.end(),
                                                          bytes_b.begin(), bytes_b.end())});
      break;
    }
  }
  return found;
}

CheckpointSpectrum find_spectra(const Checkpoint& checkpoint,
                                const std::vector<LogicalTensor>& tensors,
                                const Architecture* architecture, bool quiet) {
  // A checkpoint of vectors alone has no spectra, which is no fault of it.
  if (logical_matrices(checkpoint, tensors, architecture).matrices.empty()) return {};
  Progress progress("spectra", static_cast<std::uint64_t>(total_parameters(tensors)), quiet);
  return checkpoint_spectrum(checkpoint, tensors, architecture,
                             {.on_progress = [&](Index done, Index /*all*/) {
                               progress.advance(static_cast<std::uint64_t>(done));
                             }});
}

int inspect(const InspectOptions& options, const CommonOptions& common) {
  Inspection inspection{.input = open_model_with_checkpoint(options.path)};
  const ModelInput& input = inspection.input;
  const Architecture* const architecture = input.architecture ? &*input.architecture : nullptr;
  SpecMatches matches;
  if (architecture != nullptr) matches = match_specs(*architecture, input.tensors);
  inspection.summary = summarize(input.tensors, architecture, &matches);
  const StoredList stored = stored_list(*input.checkpoint);
  std::vector<std::uint32_t> shards;
  for (const CheckpointTensor& tensor : input.checkpoint->tensors()) {
    shards.push_back(static_cast<std::uint32_t>(tensor.shard));
  }
  inspection.differences =
      cross_check({.architecture = architecture,
                   .tensors = &input.tensors,
                   .stored = &stored,
                   .index = input.checkpoint->index() ? &*input.checkpoint->index() : nullptr,
                   .shards = &shards,
                   .matches = &matches});
  inspection.active_parameters = active_parameters_of(inspection, matches);
  if (options.values) {
    inspection.values = scan_all(*input.checkpoint, common.quiet || common.json);
    inspection.tied = compare_tied(input, matches);
  }
  if (options.spectrum) {
    inspection.spectra =
        find_spectra(*input.checkpoint, input.tensors, architecture, common.quiet || common.json);
  }
  if (common.json) {
    print_json(to_json(inspection, options.tensors));
  } else {
    print(inspection_text(inspection, options.tensors));
  }
  return has_errors(inspection) ? 1 : 0;
}

}  // namespace

void add_inspect(CommandLine& line) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* const command = add_command(
      line,
      {.name = "inspect",
       .summary = "Show what is in a checkpoint, and whether config, index and headers agree",
       .examples = {"eckart inspect models/all-MiniLM-L6-v2",
                    "eckart inspect model.safetensors --tensors",
                    "eckart inspect models/all-MiniLM-L6-v2 --values --json"}},
      [options, &line] { return inspect(*options, line.common); });
  command->add_option("path", options->path, "A model folder, a .safetensors file or an index")
      ->required()
      ->type_name("PATH");
  command->add_flag("--tensors", options->tensors, "List every tensor, unfolded");
  command->add_flag("--values", options->values,
                    "Read all values: find NaN, infinities and tensors that are all zero");
  command->add_flag("--spectrum", options->spectrum,
                    "Find each matrix' stable and effective rank and power-law exponent");
}

}  // namespace eckart::cli
