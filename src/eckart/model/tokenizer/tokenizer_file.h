// A tokenizer.json as it was parsed: long lists by themselves, the rest as a tree. Internal.
#pragma once

#include "eckart/model/tokenizer/vocabulary.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace eckart::detail {

struct TokenizerFile {
  /// A merge's two tokens, one behind the other in `merge_text`.
  struct Merge {
    std::size_t begin = 0;
    std::uint32_t left_bytes = 0;
    std::uint32_t right_bytes = 0;
  };

  std::string source;
  nlohmann::json root;         // all but the lists below
  Vocabulary vocabulary;       // model.vocab; of a list, the position is the id
  std::vector<double> scores;  // of Unigram's list
  bool vocabulary_is_list = false;
  std::string merge_text;
  std::vector<Merge> merges;  // model.merges, in their order

  std::string_view left(const Merge& merge) const {
    return std::string_view(merge_text).substr(merge.begin, merge.left_bytes);
  }
  std::string_view right(const Merge& merge) const {
    return std::string_view(merge_text).substr(merge.begin + merge.left_bytes, merge.right_bytes);
  }
};

/// Parses a tokenizer.json. `source` names it in messages. Throws FormatError, with the byte, when
/// it is no JSON object, a key or an id stands twice, or an id or a merge is none.
TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& source);

}  // namespace eckart::detail
