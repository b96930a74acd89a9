// A model whose head is its embedding: one matrix in the file, two modules for an adapter.
#pragma once

#include "eckart/io/checkpoint.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/logical_tensors.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// Both names as the base's files have them, or would have them.
struct TiedEmbeddings {
  std::string embedding;
  std::string head;
  bool head_is_stored = false;  // a copy, which readers pass over
  /// The head's bias where the files have it beside the head (`cls.predictions.bias` of
  /// `cls.predictions.decoder`); else empty.
  std::string head_bias = {};
};

/// The pair of a tied model; nothing when it isn't tied. Taken from the table where the family is
/// known, else from `tie_word_embeddings` and the names that most families use. A config that does
/// not say it ties a language model whose files hold no head.
std::optional<TiedEmbeddings> tied_embeddings(const Checkpoint& base,
                                              const std::vector<LogicalTensor>& tensors,
                                              const Architecture* architecture,
                                              const Config* config);

/// The names that transformers' class has for tensors of a base where they are not those of its
/// files, each with that of the files: of renamed modules, tables that an encoder and a decoder
/// share, the bias of a tied head.
std::map<std::string, std::string> class_aliases(const std::vector<std::string>& stored,
                                                 const std::optional<TiedEmbeddings>& tied,
                                                 const Config* config);

/// Whether a tensor of this name is a table of tokens, or the head that reads it backwards, by the
/// names that most families use.
bool is_embedding_name(std::string_view name);
bool is_head_name(std::string_view name);

}  // namespace eckart
