// Unigram (Kudo 2018): of all ways to cut a word into tokens the one whose sum of scores is the
// highest, by Viterbi's algorithm: one step for each character and token that begins there.
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/byte_trie.h"
#include "eckart/model/tokenizer/token_model.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace eckart::detail {
namespace {

constexpr double unk_penalty = 10;  // below the lowest score
constexpr std::uint32_t none = 0xffffffffU;
constexpr std::size_t max_piece_bytes = 1000;  // bounds the steps of a character

class Unigram : public TokenModel {
 public:
  Unigram(const TokenizerFile& file, const Vocabulary& vocabulary, std::optional<std::uint32_t> unk,
          bool byte_fallback)
      : scores_(file.scores), unk_(unk), byte_fallback_(byte_fallback) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const double score : scores_) lowest = std::min(lowest, score);
    unk_score_ = lowest - unk_penalty;
    for (std::uint32_t id = 0; id < scores_.size(); ++id) {
      const std::string& token = vocabulary.token(id);
      if (!token.empty()) trie_.add(token, id);
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::string token = std::string("<0x") + digits[byte / 16] + digits[byte % 16] + '>';
      of_byte_[byte] = vocabulary.find(token).value_or(none);
    }
  }

  void tokenize(std::string_view word, ModelScratch& scratch,
                std::vector<WordToken>& tokens) const override {
    find_best(word, scratch.steps);
    std::vector<WordToken>& found = scratch.tokens;
    found.clear();
    for (auto end = static_cast<std::uint32_t>(word.size()); end > 0;) {
      const ModelScratch::Step& step = scratch.steps[end];
      // Unknown characters side by side are one token.
      if (step.id == none && !found.empty() && found.back().id == none) {
        found.back().range.begin = step.begin;
      } else {
        found.push_back({step.id, {step.begin, end}});
      }
      end = step.begin;
    }
    for (auto token = found.rbegin(); token != found.rend(); ++token) add(word, *token, tokens);
  }

 private:
  void find_best(std::string_view word, std::vector<ModelScratch::Step>& steps) const {
    steps.assign(word.size() + 1, {});
    steps[0].reached = true;
    for (std::uint32_t at = 0; at < word.size();) {
      const double so_far = steps[at].score;
      const std::size_t length = decode_utf8(word.substr(at)).length;
      bool has_character = false;
      const auto offer = [&](std::size_t bytes, double score, std::uint32_t id) {
        ModelScratch::Step& end = steps[at + bytes];
        if (!end.reached || so_far + score > end.score) end = {so_far + score, at, id, true};
      };
      trie_.for_each_prefix(word.substr(at), [&](std::size_t bytes, std::uint32_t id) {
        offer(bytes, scores_[id], id == unk_ ? none : id);
        has_character = has_character || bytes == length;
      });
      if (!has_character) offer(length, unk_score_, none);
      at += static_cast<std::uint32_t>(length);
    }
  }

  void add(std::string_view word, const WordToken& token, std::vector<WordToken>& tokens) const {
    if (token.id != none) return tokens.push_back(token);
    const std::string_view unknown =
        word.substr(token.range.begin, token.range.end - token.range.begin);
    const auto id_of = [&](char byte) { return of_byte_[static_cast<unsigned char>(byte)]; };
    if (byte_fallback_ && std::none_of(unknown.begin(), unknown.end(),
                                       [&](char byte) { return id_of(byte) == none; })) {
      for (const char byte : unknown) tokens.push_back({id_of(byte), token.range});
      return;
    }
    if (!unk_) throw_unknown(unknown, "");
    tokens.push_back({*unk_, token.range});
  }

  std::vector<double> scores_;
  std::optional<std::uint32_t> unk_;
  bool byte_fallback_;
  double unk_score_ = 0;
  ByteTrie trie_;
  std::array<std::uint32_t, 256> of_byte_{};
};

}  // namespace

std::unique_ptr<TokenModel> read_unigram(const Fields& section, const TokenizerFile& file,
                                         const Vocabulary& vocabulary) {
  std::optional<std::uint32_t> unk;
  if (section.has("unk_id")) {
    const std::int64_t id = section.integer("unk_id");
    if (id >= static_cast<std::int64_t>(file.scores.size())) {
      section.fail("has unk_id " + std::to_string(id) + ", but its vocabulary has " +
                   std::to_string(file.scores.size()) + " tokens");
    }
    unk = static_cast<std::uint32_t>(id);
  }
  if (vocabulary.longest() > max_piece_bytes) {
    section.fail("has a token of " + std::to_string(vocabulary.longest()) +
                 " bytes, but Unigram's have at most 1,000");
  }
  return std::make_unique<Unigram>(file, vocabulary, unk,
                                   section.boolean_or("byte_fallback", false));
}

}  // namespace eckart::detail
