// How the tokens of a tokenizer become text again. Internal.
#pragma once

#include "eckart/model/tokenizer/fields.h"

#include <memory>
#include <string>
#include <vector>

namespace eckart::detail {

/// Tokens on their way to a text, and where they stand in it.
struct DecodeDraft {
  struct Part {
    std::string text;
    bool is_added = false;  // an added token, which is spelled as in the text
  };

  std::vector<Part> parts;
  bool at_start = true;  // parts.front() begins the text
  bool at_end = true;    // parts.back() ends it
  bool is_fused = false;
};

class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  virtual void apply(DecodeDraft& draft) const = 0;
};

/// Applied one after the other; the texts are then put together. Without any, tokens stand between
/// spaces.
using Decoders = std::vector<std::unique_ptr<Decoder>>;

std::unique_ptr<Decoder> word_piece_decoder(std::string prefix, bool cleanup);

/// Adds what a section `decoder` says. Throws FormatError for a broken one, ArgumentError for a
/// type that is not read.
void read_decoders(const Fields& section, Decoders& decoders);

/// The text of a draft.
std::string decoded(const Decoders& decoders, DecodeDraft draft);

}  // namespace eckart::detail
