// A safetensors header as the checkpoint of a small model: the first byte picks the config and what
// it says about quantization, the rest is the header. Everything that looks at tensors runs.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/count_tensors.h"
#include "eckart/model/cross_check.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/shape_flow.h"
#include "eckart/model/summary.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using eckart::Architecture;
using eckart::Index;
using eckart::LogicalTensor;

// Sizes that all of them have; a family's own settings follow.
constexpr std::string_view sizes =
    R"("vocab_size": 10, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 4,
       "num_key_value_heads": 2, "intermediate_size": 6, "max_position_embeddings": 32)";
constexpr std::array<std::string_view, 8> families = {
    R"("model_type": "llama", "tie_word_embeddings": false)",
    R"("model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 4, "n_positions": 8)",
    R"("model_type": "bert", "architectures": ["BertForMaskedLM"], "type_vocab_size": 2)",
    R"("model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2)",
    R"("model_type": "gpt_oss", "head_dim": 2, "num_local_experts": 3, "num_experts_per_tok": 2)",
    R"("model_type": "gemma3_text", "head_dim": 2, "sliding_window": 4)",
    R"("model_type": "phi3", "architectures": ["Phi3ForSequenceClassification"])",
    R"("model_type": "bloom", "n_layer": 2, "n_head": 4)",
};
constexpr std::array<std::string_view, 4> quantizations = {
    "",
    R"(, "quantization_config": {"quant_method": "gptq", "bits": 4})",
    R"(, "quantization_config": {"quant_method": "compressed-tensors", "bits": 3})",
    R"(, "quantization": {"bits": 4, "group_size": 32})",
};

void require(bool holds) {
  if (!holds) std::abort();
}

// The header as a file with room for small tensors behind it.
std::vector<eckart::StoredTensor> read(std::string_view header) {
  constexpr std::size_t data_bytes = 4096;
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xffU);
  file += header;
  file.append(data_bytes, '\0');
  eckart::Findings findings;
  return eckart::read_safetensors_header(std::as_bytes(std::span(file)), "fuzz",
                                         eckart::Strictness::read, findings)
      .tensors;
}

// An index that names every other tensor, and one that no header has.
eckart::ShardIndex index_of(const std::vector<eckart::StoredTensor>& tensors) {
  eckart::ShardIndex index;
  index.shards = {"model.safetensors"};
  index.total_size = 96;
  for (std::size_t i = 0; i < tensors.size(); i += 2) index.entries.push_back({tensors[i].name, 0});
  index.entries.push_back({"\x1b is in no header.3", 0});
  return index;
}

void check_sentence(const std::string& sentence) {
  require(!sentence.empty() && sentence == eckart::printable_path(sentence));
}

void check_tables(const Architecture& architecture, const std::vector<LogicalTensor>& tensors,
                  const eckart::CrossCheckInput& input) {
  const eckart::SpecMatches matches = eckart::match_specs(architecture, tensors);
  require(matches.of.size() == tensors.size());
  const eckart::Summary summary = eckart::summarize(tensors, &architecture, &matches);
  require(summary.root.parameters <= eckart::total_parameters(tensors));
  require(eckart::summarize(tensors).root.n_tensors <= static_cast<Index>(tensors.size()));
  for (const eckart::Difference& difference : eckart::cross_check(input)) {
    check_sentence(difference.message);
    require(difference.count >= 0);
  }
  const eckart::Flow flow = eckart::shape_flow(architecture, {.tokens = 3, .layer = 1});
  if (const auto conflict = eckart::check_flow(flow, architecture, tensors)) {
    check_sentence(conflict->message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view quantization = quantizations[data[0] / families.size() % 4];
  std::string json = "{";
  json += families[data[0] % families.size()];
  json += ", ";
  json += sizes;
  json += quantization;
  json += "}";
  const eckart::Config config = eckart::parse_config(json, "config.json");
  const Architecture architecture = eckart::read_architecture(config);
  const std::vector<eckart::StoredTensor> stored =
      read({reinterpret_cast<const char*>(data) + 1, size - 1});
  const eckart::StoredList list = eckart::stored_list(stored);
  const std::vector<LogicalTensor> tensors =
      eckart::logical_tensors(list, eckart::read_quantization(config));
  const eckart::ShardIndex index = index_of(stored);
  check_tables(
      architecture, tensors,
      {.architecture = &architecture, .tensors = &tensors, .stored = &list, .index = &index});
  try {
    eckart::count_tensors(tensors, 1);
  } catch (const eckart::ArgumentError&) {
  }
  return 0;
}
