// Tokens that are found in a text before it is split: special ones and others added later. Internal.
#pragma once

#include "eckart/model/tokenizer/aligned_text.h"
#include "eckart/model/tokenizer/byte_trie.h"
#include "eckart/model/tokenizer/fields.h"
#include "eckart/model/tokenizer/normalizer.h"
#include "eckart/model/tokenizer/vocabulary.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eckart::detail {

struct AddedToken {
  std::string content;
  std::string decoded;  // the content; of a normalized one, normalized, as it was found
  std::uint32_t id = 0;
  bool special = false;
  bool single_word = false;  // found only where no letter touches it
  bool lstrip = false;       // takes the spaces before it
  bool rstrip = false;       // and behind it
  bool normalized = false;   // found in the normalized text
};

class AddedTokens {
 public:
  /// Those of a file; `normalizers` are applied to the contents of normalized ones.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizers& normalizers);

  std::optional<std::uint32_t> find(std::string_view content) const;
  /// Null for an id that is no added token's.
  const AddedToken* token(std::uint32_t id) const;
  /// The largest id + 1; 0 without tokens.
  std::uint32_t size() const { return size_; }
  /// Whether there are any to be found in the normalized text.
  bool any_normalized() const { return !normalized_.empty(); }

  /// Calls `part(range, token)` for every token found, leftmost and longest, and, with a null
  /// token, for what lies between, left to right.
  template <class Part>
  void split(std::string_view text, bool normalized, const Part& part) const {
    const ByteTrie& search = normalized ? normalized_ : plain_;
    std::uint32_t done = 0;
    Match match;
    while (next(search, text, done, match)) {
      if (match.range.begin > done) part(ByteRange{done, match.range.begin}, nullptr);
      part(match.range, match.token);
      done = match.range.end;
    }
    if (done < text.size()) part(ByteRange{done, static_cast<std::uint32_t>(text.size())}, nullptr);
  }

 private:
  struct Match {
    ByteRange range;  // with the spaces that it takes
    const AddedToken* token = nullptr;
    std::uint32_t resume = 0;  // where the search goes on
  };

  bool next(const ByteTrie& search, std::string_view text, std::uint32_t done, Match& match) const;
  bool widen(std::string_view text, std::uint32_t done, Match& match) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, std::uint32_t> by_content_;  // position in tokens_
  std::unordered_map<std::uint32_t, std::uint32_t> by_id_;
  ByteTrie plain_;       // contents as they are
  ByteTrie normalized_;  // and normalized
  std::uint32_t size_ = 0;
};

/// `added_tokens` of a tokenizer.json. Throws FormatError for one that contradicts another or the
/// vocabulary.
std::vector<AddedToken> read_added_tokens(const Fields& root, const Vocabulary& vocabulary);

}  // namespace eckart::detail
