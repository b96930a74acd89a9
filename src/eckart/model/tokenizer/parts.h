// What a tokenizer consists of. Internal.
#pragma once

#include "eckart/model/tokenizer.h"
#include "eckart/model/tokenizer/added_tokens.h"
#include "eckart/model/tokenizer/decoder.h"
#include "eckart/model/tokenizer/normalizer.h"
#include "eckart/model/tokenizer/post_processor.h"
#include "eckart/model/tokenizer/pre_tokenizer.h"
#include "eckart/model/tokenizer/token_model.h"
#include "eckart/model/tokenizer/vocabulary.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

struct TokenizerParts {
  explicit TokenizerParts(std::string file) : source(std::move(file)) {}

  std::string source;
  Vocabulary vocabulary;  // the model's, which refers to it
  Normalizers normalizers;
  PreTokenizers pre_tokenizers;
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<AddedTokens> added;
  PostProcessors post_processors;
  Decoders decoders;

  std::uint32_t size() const { return std::max(vocabulary.size(), added->size()); }
  const std::string& token(std::uint32_t id) const {
    const AddedToken* const token = added->token(id);
    return token != nullptr ? token->content : vocabulary.token(id);
  }
};

/// From the text of a tokenizer.json; throws as load_tokenizer.
std::shared_ptr<const TokenizerParts> parse_tokenizer_json(std::string_view json,
                                                           const std::string& source);
/// From the text of a vocab.txt and of the tokenizer_config.json beside it, which may be empty.
std::shared_ptr<const TokenizerParts> parse_vocab_txt(std::string_view text,
                                                      std::string_view config,
                                                      const std::string& source);
/// A tokenizer of these parts.
Tokenizer tokenizer_of(std::shared_ptr<const TokenizerParts> parts);

}  // namespace eckart::detail
