// What stands on top of the layers.
#pragma once

#include "eckart/model/families/blocks/table.h"

#include <string_view>

namespace eckart {

struct DecoderHead {
  /// The embedding, whose storage a tied unembedding shares: `embed_tokens`, without the scope.
  std::string_view embedding = "embed_tokens";
  std::string_view unembedding = "lm_head";
  bool unembedding_bias = false;
  /// The classifier of tokens; the classifier of sequences is `score` in every family.
  std::string_view token_classifier = "score";
  /// Its name in older files, where it had another.
  std::string_view old_token_classifier = {};
};

/// Opens the base of a decoder whose class for answering questions holds it as `transformer`, not
/// as `model`.
void begin_decoder_base(Table& table);

/// The head that the class of a decoder names: a language model's unembedding, a classifier, none.
void decoder_head(Table& table, const DecoderHead& options = {});

/// The number of labels: `num_labels`, else the entries of `id2label`, else 2.
Index n_labels(const Table& table);
/// `<name>` of n_labels (or `n` where it is not 0) x d_model, with a bias unless told.
struct Classifier {
  std::string_view name;
  Use use = Use::per_sequence;
  bool bias = true;
  Index n = 0;
  std::string_view old_name = {};  // in older files, where it was another
};
void classifier(Table& table, const Classifier& options);

/// A d_model x d_model matrix with bias in a head: a pooler, the transform before an unembedding.
void square_dense(Table& table, std::string_view name, Role role, Use use);

/// An encoder's tied unembedding: `decoder` shares the embedding's storage, `bias` is its own and
/// `decoder`'s bias shares it, as the pairs of names are given.
struct TiedUnembedding {
  std::string_view embedding;  // full name of the embedding's weight
  std::string_view decoder;    // name without .weight
  std::string_view bias;       // full name of the bias
};
void tied_unembedding(Table& table, const TiedUnembedding& options);

}  // namespace eckart
