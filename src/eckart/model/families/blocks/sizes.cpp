#include "eckart/model/families/blocks/sizes.h"

#include "eckart/io/findings.h"

#include <cstddef>

namespace eckart {
namespace {

void read_kv_heads(Table& table, std::optional<Index> value) {
  Architecture& arch = table.arch;
  const bool is_null =
      table.config().has("num_key_value_heads") && !table.config().size({"num_key_value_heads"});
  arch.n_kv_heads =
      is_null ? arch.n_heads : table.size_or({"num_key_value_heads"}, value.value_or(arch.n_heads));
}

}  // namespace

void divide_heads(Table& table) {
  Architecture& arch = table.arch;
  if (arch.d_model % arch.n_heads != 0) {
    table.fail("it has " + std::to_string(arch.n_heads) + " attention heads for a hidden size of " +
               std::to_string(arch.d_model) + ", but the heads must divide it evenly");
  }
  arch.d_head = arch.d_model / arch.n_heads;
}

void read_decoder_sizes(Table& table, const DecoderDefaults& defaults) {
  Architecture& arch = table.arch;
  arch.is_gated = true;
  arch.n_vocab = defaults.n_vocab ? table.size_or({"vocab_size"}, *defaults.n_vocab)
                                  : table.size({"vocab_size"});
  arch.d_model = table.size({"hidden_size"});
  arch.n_layers = table.layer_count({"num_hidden_layers"});
  arch.n_heads = defaults.n_heads ? table.size_or({"num_attention_heads"}, *defaults.n_heads)
                                  : table.size({"num_attention_heads"});
  if (defaults.has_kv_heads) {
    read_kv_heads(table, defaults.n_kv_heads);
  } else {
    arch.n_kv_heads = arch.n_heads;
  }
  if (defaults.d_head) {
    arch.d_head = table.size_or({"head_dim"}, *defaults.d_head);
  } else if (defaults.has_head_dim && table.config().size({"head_dim"})) {
    arch.d_head = table.size({"head_dim"});
  } else {
    divide_heads(table);
  }
  if (defaults.has_dense_mlp) arch.d_ff = table.size({"intermediate_size"});
  arch.context = table.size_or({"max_position_embeddings"}, defaults.context);
  table.read_tie(defaults.is_tied);
  arch.attention_dropout = table.probability({"attention_dropout"}, 0);
}

void read_rotary_share(Table& table, Config::Names names, double share) {
  share = table.probability(names, share);
  if (const std::optional<Config> rope = table.config().section("rope_parameters")) {
    share = rope->number({"partial_rotary_factor"}).value_or(share);
  }
  const auto turned = static_cast<Index>(static_cast<double>(table.arch.d_head) * share);
  table.arch.d_rotary = turned < table.arch.d_head && turned > 0 ? turned : 0;
}

void set_windows(Table& table, Index window, const std::function<bool(Index)>& is_sliding) {
  Architecture& arch = table.arch;
  const std::vector<std::string> types = table.config().texts({"layer_types"});
  if (!types.empty() && static_cast<Index>(types.size()) != arch.n_layers) {
    table.fail("layer_types has " + std::to_string(types.size()) + " entries for " +
               std::to_string(arch.n_layers) + " layers, but each layer takes one");
  }
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    if (types[layer] == "sliding_attention" || types[layer] == "full_attention") continue;
    table.fail("layer_types says \"" + printable(types[layer], 60) + "\" for layer " +
               std::to_string(layer) + ", but " + arch.family +
               " knows only sliding_attention and full_attention");
  }
  arch.windows.clear();
  for (Index layer = 0; layer < arch.n_layers; ++layer) {
    const bool sliding = types.empty()
                             ? is_sliding(layer)
                             : types[static_cast<std::size_t>(layer)] == "sliding_attention";
    arch.windows.push_back(sliding ? window : 0);
  }
}

Index read_window(Table& table, Index value) {
  if (table.config().has("sliding_window")) {
    return table.config().size({"sliding_window"}).value_or(0);
  }
  return table.size_or({"sliding_window"}, value);
}

}  // namespace eckart
