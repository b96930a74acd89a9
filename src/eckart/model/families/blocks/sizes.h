// The sizes that most decoders' configs name alike, and the windows of their layers.
#pragma once

#include "eckart/model/families/blocks/table.h"

#include <functional>
#include <optional>

namespace eckart {

/// Which sizes a family's configs have, and what it takes for those that one leaves out.
struct DecoderDefaults {
  Index context = 0;
  bool has_dense_mlp = true;  // reads intermediate_size as d_ff
  bool has_kv_heads = true;
  bool has_head_dim = true;
  std::optional<Index> n_kv_heads = {};  // nothing: as many as heads
  std::optional<Index> d_head = {};      // nothing: d_model / n_heads
  bool is_tied = false;
  /// Gemma 3's nested text_config leaves these out too.
  std::optional<Index> n_vocab = {};
  std::optional<Index> n_heads = {};
};

/// Reads vocab_size, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads,
/// head_dim, intermediate_size, max_position_embeddings, tie_word_embeddings and attention_dropout.
/// The class must be read before.
void read_decoder_sizes(Table& table, const DecoderDefaults& defaults);

/// Sets d_head to d_model / n_heads. Throws FormatError when they do not divide.
void divide_heads(Table& table);

/// Sets how much of each head is turned: the share that the config gives under one of the names
/// (newer ones keep `partial_rotary_factor` in `rope_parameters`), else `share`.
void read_rotary_share(Table& table, Config::Names names, double share);

/// Sets the windows: `window` in the layers that `layer_types` calls sliding_attention or, without
/// that list, in those where `is_sliding(layer)`; a window of 0 is none.
void set_windows(Table& table, Index window, const std::function<bool(Index)>& is_sliding);

/// `sliding_window`: absent, `value` is taken and noted; null is none.
Index read_window(Table& table, Index value);

}  // namespace eckart
