// What a tokenizer does to a text before it is split. Internal.
#pragma once

#include "eckart/model/tokenizer/aligned_text.h"
#include "eckart/model/tokenizer/fields.h"

#include <memory>
#include <string>
#include <vector>

namespace eckart::detail {

class Normalizer {
 public:
  Normalizer() = default;
  Normalizer(const Normalizer&) = delete;
  Normalizer& operator=(const Normalizer&) = delete;
  virtual ~Normalizer() = default;

  virtual void apply(AlignedText& text) const = 0;
};

/// Applied one after the other.
using Normalizers = std::vector<std::unique_ptr<Normalizer>>;

/// The settings of BERT's normalizer.
struct BertRules {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
std::unique_ptr<Normalizer> bert_normalizer(const BertRules& rules);

/// Adds what a section `normalizer` says. Throws FormatError for a broken one, ArgumentError for a
/// type that is not read.
void read_normalizers(const Fields& section, Normalizers& normalizers);

void apply_all(const Normalizers& normalizers, AlignedText& text);

/// Puts `inserted` before the first character, whose place it has; of no text it makes none.
void prepend(AlignedText& text, std::string_view inserted);

}  // namespace eckart::detail
