// The encoder that BERT and RoBERTa share: same sizes, same names, same layers.
#pragma once

#include "eckart/model/families/blocks/table.h"

namespace eckart {

/// Reads vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size,
/// max_position_embeddings, type_vocab_size, the dropouts, is_decoder and tie_word_embeddings.
void read_encoder_sizes(Table& table);

/// The embeddings and the layers, without a pooler.
void bert_encoder(Table& table);

/// Reads the first token's last state: `pooler.dense`.
void bert_pooler(Table& table);

}  // namespace eckart
