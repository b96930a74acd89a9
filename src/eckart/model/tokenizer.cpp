#include "eckart/model/tokenizer.h"

#include "eckart/core/errors.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/parts.h"
#include "eckart/model/tokenizer/word_cache.h"

#include <limits>
#include <utility>

namespace eckart {
namespace {

using detail::AddedToken;
using detail::AlignedText;
using detail::ByteRange;
using detail::DecodeDraft;
using detail::TokenizerParts;
using detail::WordList;

constexpr std::string_view space_mark = "\xE2\x96\x81";

ByteRange whole(std::string_view text) { return {0, static_cast<std::uint32_t>(text.size())}; }

// One text on its way to its tokens.
class Encoder {
 public:
  explicit Encoder(const TokenizerParts& parts) : parts_(parts), cache_(*parts.model) {}

  Encoding encode(std::string_view text) {
    parts_.added->split(text, false, [&](ByteRange range, const AddedToken* token) {
      if (token != nullptr) return add(token->id, {range.begin, range.end});
      AlignedText part(text, range);
      apply_all(parts_.normalizers, part);
      add_normalized(std::move(part));
    });
    return std::move(encoding_);
  }

 private:
  void add(std::uint32_t id, TokenSpan span) {
    encoding_.ids.push_back(static_cast<Index>(id));
    encoding_.spans.push_back(span);
  }

  void add_normalized(AlignedText text) {
    if (!parts_.added->any_normalized()) return add_words(std::move(text));
    parts_.added->split(text.text(), true, [&](ByteRange range, const AddedToken* token) {
      if (token != nullptr) return add(token->id, text.place(range));
      AlignedText part;
      part.clear_to_build(range.end - range.begin);
      part.append(text, range);
      add_words(std::move(part));
    });
  }

  void add_words(AlignedText text) {
    if (text.empty()) return;
    const ByteRange all = whole(text.text());
    WordList list{std::move(text), {all}};
    for (const auto& pre_tokenizer : parts_.pre_tokenizers.all) pre_tokenizer->apply(list);
    for (const ByteRange word : list.words) {
      if (parts_.model->cuts_at_spaces()) {
        add_cut(list.text, word);
      } else {
        add_word(list.text, word);
      }
    }
  }

  // A word in pieces that each begin with a run of marks of spaces.
  void add_cut(const AlignedText& text, ByteRange word) {
    const std::string_view all = text.text().substr(0, word.end);
    std::uint32_t begin = word.begin;
    for (std::size_t at = all.find(space_mark, begin); at != std::string_view::npos;
         at = all.find(space_mark, at + space_mark.size())) {
      const auto mark = static_cast<std::uint32_t>(at);
      if (mark == begin || all.substr(begin, mark - begin).ends_with(space_mark)) continue;
      add_word(text, {begin, mark});
      begin = mark;
    }
    add_word(text, {begin, word.end});
  }

  void add_word(const AlignedText& text, ByteRange word) {
    if (word.begin >= word.end) return;
    for (const detail::WordToken& token :
         cache_.tokens_of(text.text().substr(word.begin, word.end - word.begin))) {
      add(token.id, text.place({word.begin + token.range.begin, word.begin + token.range.end}));
    }
  }

  const TokenizerParts& parts_;
  detail::WordCache cache_;
  Encoding encoding_;
};

const TokenizerParts& of(const std::shared_ptr<const TokenizerParts>& parts) {
  if (parts == nullptr) throw_argument_error("tokenizer: it is empty, but it must be loaded first");
  return *parts;
}

std::uint32_t checked(const TokenizerParts& parts, Index id, const char* operation) {
  if (id < 0 || id >= static_cast<Index>(parts.size())) {
    throw_argument_error(std::string(operation) + ": the id is " + std::to_string(id) +
                         ", but the tokenizer's ids are 0 to " +
                         std::to_string(static_cast<Index>(parts.size()) - 1));
  }
  return static_cast<std::uint32_t>(id);
}

bool stands_for_token(const TokenizerParts& parts, std::uint32_t id) {
  return parts.added->token(id) != nullptr || parts.vocabulary.has(id);
}

DecodeDraft::Part decoded_part(const TokenizerParts& parts, std::uint32_t id) {
  const AddedToken* const added = parts.added->token(id);
  if (added != nullptr) return {added->decoded, true};
  return {parts.vocabulary.token(id), false};
}

}  // namespace

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const TokenizerParts& parts = of(parts_);
  // Places are kept in 32 bits; a normalizer can make a text several times as long.
  constexpr std::size_t limit = std::numeric_limits<std::uint32_t>::max() / 32;
  if (text.size() > limit) {
    throw_argument_error("encode: the text has " + std::to_string(text.size()) +
                             " bytes, but at most 134,217,727 are taken at once",
                         "encode it in parts");
  }
  if (const auto bad = find_invalid_utf8(text)) {
    throw_argument_error("encode: byte " + std::to_string(*bad) +
                         " of the text is no UTF-8, but a text is UTF-8");
  }
  detail::DraftEncoding draft{text, parts.vocabulary, *parts.added, options.special_tokens,
                              Encoder(parts).encode(text)};
  for (const auto& processor : parts.post_processors) processor->apply(draft);
  return std::move(draft.encoding);
}

std::string Tokenizer::decode(std::span<const Index> ids, bool skip_special) const {
  const TokenizerParts& parts = of(parts_);
  DecodeDraft draft;
  draft.parts.reserve(ids.size());
  for (const Index given : ids) {
    const std::uint32_t id = checked(parts, given, "decode");
    const AddedToken* const added = parts.added->token(id);
    if (skip_special && added != nullptr && added->special) continue;
    if (stands_for_token(parts, id)) draft.parts.push_back(decoded_part(parts, id));
  }
  return decoded(parts.decoders, std::move(draft));
}

std::string Tokenizer::bytes(Index id) const {
  const TokenizerParts& parts = of(parts_);
  const std::uint32_t checked_id = checked(parts, id, "bytes");
  if (!stands_for_token(parts, checked_id)) return {};
  DecodeDraft draft;
  draft.parts.push_back(decoded_part(parts, checked_id));
  draft.at_start = false;
  draft.at_end = false;
  return decoded(parts.decoders, std::move(draft));
}

const std::string& Tokenizer::token(Index id) const {
  const TokenizerParts& parts = of(parts_);
  return parts.token(checked(parts, id, "token"));
}

std::optional<Index> Tokenizer::id(std::string_view token) const {
  const TokenizerParts& parts = of(parts_);
  auto found = parts.added->find(token);
  if (!found) found = parts.vocabulary.find(token);
  if (!found) return std::nullopt;
  return static_cast<Index>(*found);
}

bool Tokenizer::is_special(Index id) const {
  const TokenizerParts& parts = of(parts_);
  const AddedToken* const token = parts.added->token(checked(parts, id, "is_special"));
  return token != nullptr && token->special;
}

Index Tokenizer::size() const { return static_cast<Index>(of(parts_).size()); }

const std::string& Tokenizer::source() const { return of(parts_).source; }

Tokenizer detail::tokenizer_of(std::shared_ptr<const TokenizerParts> parts) {
  Tokenizer tokenizer;
  tokenizer.parts_ = std::move(parts);
  return tokenizer;
}

}  // namespace eckart
