#include "eckart/model/tokenizer/added_tokens.h"

#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/characters.h"

#include <algorithm>
#include <utility>

namespace eckart::detail {
namespace {

constexpr std::size_t max_content_bytes = 1000;  // bounds the steps of a byte of text

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

char32_t first_character(std::string_view text) { return decode_utf8(text).code; }

// The last character of a text that isn't empty, and where it begins.
std::pair<char32_t, std::size_t> last_character(std::string_view text) {
  std::size_t begin = text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  return {decode_utf8(text.substr(begin)).code, begin};
}

bool touches_word(std::string_view text, ByteRange range) {
  const std::string_view before = text.substr(0, range.begin);
  const std::string_view behind = text.substr(range.end);
  return (!before.empty() && is_word_character(last_character(before).first)) ||
         (!behind.empty() && is_word_character(first_character(behind)));
}

std::uint32_t begin_of_spaces(std::string_view before) {
  while (!before.empty()) {
    const auto [c, begin] = last_character(before);
    if (!is_white_space(c)) break;
    before = before.substr(0, begin);
  }
  return static_cast<std::uint32_t>(before.size());
}

std::uint32_t length_of_spaces(std::string_view behind) {
  std::size_t length = 0;
  while (length < behind.size()) {
    const Utf8Character next = decode_utf8(behind.substr(length));
    if (!is_white_space(next.code)) break;
    length += next.length;
  }
  return static_cast<std::uint32_t>(length);
}

std::string in_quotes(std::string_view text) { return '"' + printable(text, 60) + '"'; }

AddedToken read_added_token(const Fields& entry) {
  AddedToken token;
  token.content = entry.text("content");
  const std::int64_t id = entry.integer("id");
  if (id >= static_cast<std::int64_t>(Vocabulary::id_limit)) {
    entry.fail("has the id " + std::to_string(id) + ", but ids are below 2^22 = 4,194,304");
  }
  token.id = static_cast<std::uint32_t>(id);
  token.special = entry.boolean_or("special", false);
  token.single_word = entry.boolean_or("single_word", false);
  token.lstrip = entry.boolean_or("lstrip", false);
  token.rstrip = entry.boolean_or("rstrip", false);
  token.normalized = entry.boolean_or("normalized", !token.special);
  if (token.content.size() > max_content_bytes) {
    entry.fail("has a content of " + std::to_string(token.content.size()) +
               " bytes, but added tokens have at most 1,000");
  }
  return token;
}

void check_against_vocabulary(const Fields& entry, const AddedToken& token,
                              const Vocabulary& vocabulary) {
  const auto id = vocabulary.find(token.content);
  if (id && *id != token.id) {
    entry.fail("gives " + in_quotes(token.content) + " the id " + std::to_string(token.id) +
               ", but the vocabulary gives it " + std::to_string(*id));
  }
  if (!id && vocabulary.has(token.id)) {
    entry.fail("gives " + in_quotes(token.content) + " the id " + std::to_string(token.id) +
               ", but the vocabulary has " + in_quotes(vocabulary.token(token.id)) + " there");
  }
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizers& normalizers)
    : tokens_(std::move(tokens)) {
  // Of tokens with one normalized form the special ones are found.
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    return a.special && !b.special;
  });
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    AddedToken& token = tokens_[i];
    token.decoded = token.content;
    by_content_.emplace(token.content, i);
    by_id_.emplace(token.id, i);
    size_ = std::max(size_, token.id + 1);
    if (!token.normalized) {
      plain_.add(token.content, i);
      continue;
    }
    AlignedText content(token.content, {0, static_cast<std::uint32_t>(token.content.size())});
    apply_all(normalizers, content);
    token.decoded = content.text();
    if (!content.empty()) normalized_.add(token.decoded, i);
  }
}

std::optional<std::uint32_t> AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  if (found == by_content_.end()) return std::nullopt;
  return tokens_[found->second].id;
}

const AddedToken* AddedTokens::token(std::uint32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

bool AddedTokens::next(const ByteTrie& search, std::string_view text, std::uint32_t done,
                       Match& match) const {
  if (search.empty()) return false;
  const auto size = static_cast<std::uint32_t>(text.size());
  for (std::uint32_t at = std::max(done, match.resume); at < size;) {
    std::uint32_t length = 0;
    if (search.begins_with(text[at])) {
      search.for_each_prefix(text.substr(at), [&](std::size_t bytes, std::uint32_t i) {
        length = static_cast<std::uint32_t>(bytes);
        match.token = &tokens_[i];
      });
    }
    if (length == 0) {
      ++at;
      continue;
    }
    match.range = {at, at + length};
    match.resume = match.range.end;
    if (widen(text, done, match)) return true;
    at = match.resume;
  }
  return false;
}

// Takes the spaces around that the token wants; false where it may not stand.
bool AddedTokens::widen(std::string_view text, std::uint32_t done, Match& match) const {
  if (match.token->single_word && touches_word(text, match.range)) return false;
  if (match.token->lstrip) {
    match.range.begin = std::max(done, begin_of_spaces(text.substr(0, match.range.begin)));
  }
  if (match.token->rstrip) match.range.end += length_of_spaces(text.substr(match.range.end));
  return true;
}

std::vector<AddedToken> read_added_tokens(const Fields& root, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (!root.has("added_tokens")) return tokens;
  std::unordered_map<std::string, std::uint32_t> ids;
  std::unordered_map<std::uint32_t, std::string> contents;
  for (const Fields& entry : root.list("added_tokens")) {
    AddedToken token = read_added_token(entry);
    if (token.content.empty()) continue;
    check_against_vocabulary(entry, token, vocabulary);
    const auto [same_content, is_new_content] = ids.emplace(token.content, token.id);
    const auto same_id = contents.emplace(token.id, token.content).first;
    if (same_content->second != token.id || same_id->second != token.content) {
      entry.fail("gives " + in_quotes(token.content) + " the id " + std::to_string(token.id) +
                 ", but another added token has one of them");
    }
    if (is_new_content) tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace eckart::detail
