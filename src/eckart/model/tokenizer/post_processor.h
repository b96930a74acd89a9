// What a tokenizer adds to the ids of a text, and how it trims their places. Internal.
#pragma once

#include "eckart/model/tokenizer.h"
#include "eckart/model/tokenizer/added_tokens.h"
#include "eckart/model/tokenizer/fields.h"
#include "eckart/model/tokenizer/vocabulary.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A text and its tokens on the way out of the tokenizer.
struct DraftEncoding {
  std::string_view text;
  const Vocabulary& vocabulary;
  const AddedTokens& added;
  bool special_tokens = true;
  Encoding encoding;
};

class PostProcessor {
 public:
  PostProcessor() = default;
  PostProcessor(const PostProcessor&) = delete;
  PostProcessor& operator=(const PostProcessor&) = delete;
  virtual ~PostProcessor() = default;

  virtual void apply(DraftEncoding& draft) const = 0;
};

/// Applied one after the other.
using PostProcessors = std::vector<std::unique_ptr<PostProcessor>>;

/// [CLS] text [SEP], or what a file has in their places.
std::unique_ptr<PostProcessor> bert_processor(std::uint32_t cls, std::uint32_t sep);

/// Adds what a section `post_processor` says. Throws FormatError for a broken one, ArgumentError
/// for a type that is not read.
void read_post_processors(const Fields& section, PostProcessors& post_processors);

}  // namespace eckart::detail
