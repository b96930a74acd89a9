// How a tokenizer splits a text into words, each of which the model takes by itself. Internal.
#pragma once

#include "eckart/model/tokenizer/aligned_text.h"
#include "eckart/model/tokenizer/fields.h"

#include <memory>
#include <vector>

namespace eckart::detail {

/// A part of a text that no added token cuts, and its words from left to right.
struct WordList {
  AlignedText text;
  std::vector<ByteRange> words;
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  virtual void apply(WordList& list) const = 0;
};

/// Applied one after the other.
struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> all;
  /// Whether the words are for a vocabulary of bytes: ByteLevel is among them, as the last one.
  bool byte_level = false;
};

std::unique_ptr<PreTokenizer> bert_pre_tokenizer();

/// Adds what a section `pre_tokenizer` says. Throws FormatError for a broken one, ArgumentError for
/// a type that is not read.
void read_pre_tokenizers(const Fields& section, PreTokenizers& pre_tokenizers);

}  // namespace eckart::detail
