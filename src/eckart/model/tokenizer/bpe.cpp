// Byte-pair encoding (Sennrich, Haddow, Birch 2016): of all neighbours that may merge, those of the
// lowest rank do, the leftmost first, until none may. A queue of candidates makes it
// O(n log n) in the length of the word.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/byte_letters.h"
#include "eckart/model/tokenizer/merge_table.h"
#include "eckart/model/tokenizer/token_model.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace eckart::detail {
namespace {

constexpr std::string_view space_mark = "\xE2\x96\x81";
constexpr std::uint32_t none = 0xffffffffU;

using Symbol = ModelScratch::Symbol;
using Candidate = ModelScratch::Candidate;

struct BpeRules {
  std::string unk_token;
  std::optional<std::uint32_t> unk;
  std::string prefix;  // of what continues a word
  std::string suffix;  // of what ends one
  bool fuse_unk = false;
  bool byte_fallback = false;
  bool ignore_merges = false;
  bool byte_level = false;
};

// For a heap whose top is the lowest rank, the leftmost of it.
bool goes_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

class Bpe : public TokenModel {
 public:
  Bpe(const Vocabulary& vocabulary, BpeRules rules, MergeTable merges, bool cuts_at_spaces)
      : vocabulary_(vocabulary),
        rules_(std::move(rules)),
        merges_(std::move(merges)),
        cuts_at_spaces_(cuts_at_spaces) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::string token;
      if (rules_.byte_level) {
        append_utf8(letter_of_byte(static_cast<unsigned char>(byte)), token);
      } else {
        token = std::string("<0x") + digits[byte / 16] + digits[byte % 16] + '>';
      }
      of_byte_[byte] = vocabulary_.find(token).value_or(none);
    }
  }

  void tokenize(std::string_view word, ModelScratch& scratch,
                std::vector<WordToken>& tokens) const override {
    if (rules_.ignore_merges) {
      const auto whole = vocabulary_.find(rules_.byte_level ? letters_of(word) : std::string(word));
      if (whole) {
        tokens.push_back({*whole, {0, static_cast<std::uint32_t>(word.size())}});
        return;
      }
    }
    scratch.symbols.clear();
    if (rules_.byte_level) {
      add_bytes(word, scratch.symbols);
    } else {
      add_characters(word, scratch.symbols);
    }
    if (scratch.symbols.empty()) return;
    merge(scratch);
    for (std::uint32_t i = 0; i != none; i = scratch.symbols[i].next) {
      tokens.push_back({scratch.symbols[i].id, scratch.symbols[i].range});
    }
  }
  bool cuts_at_spaces() const override { return cuts_at_spaces_; }

 private:
  static void add(std::uint32_t id, ByteRange range, std::vector<Symbol>& symbols) {
    symbols.push_back({id, range, 0, 0});
  }
  std::uint32_t unk(std::string_view part) const {
    if (!rules_.unk) throw_unknown(part, rules_.unk_token);
    return *rules_.unk;
  }

  void add_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
    for (std::uint32_t i = 0; i < word.size(); ++i) {
      const std::uint32_t id = of_byte_[static_cast<unsigned char>(word[i])];
      if (id != none) {
        add(id, {i, i + 1}, symbols);
      } else if (!rules_.unk_token.empty()) {
        add_unknown(word, {i, i + 1}, symbols);
      }
    }
  }

  // Unknown characters side by side are one token where the file says so.
  void add_unknown(std::string_view word, ByteRange range, std::vector<Symbol>& symbols) const {
    const std::uint32_t id = unk(word.substr(range.begin, range.end - range.begin));
    if (rules_.fuse_unk && !symbols.empty() && symbols.back().id == id &&
        symbols.back().previous == unknown && symbols.back().range.end == range.begin) {
      symbols.back().range.end = range.end;
      return;
    }
    symbols.push_back({id, range, unknown, 0});
  }

  void add_characters(std::string_view word, std::vector<Symbol>& symbols) const {
    std::string spelled;
    const bool is_decorated = !rules_.prefix.empty() || !rules_.suffix.empty();
    const auto size = static_cast<std::uint32_t>(word.size());
    for (std::uint32_t at = 0; at < size;) {
      const auto length = static_cast<std::uint32_t>(decode_utf8(word.substr(at)).length);
      const ByteRange range = {at, at + length};
      std::string_view character = word.substr(at, length);
      if (is_decorated) {
        spelled = (at > 0 ? rules_.prefix : std::string()) + std::string(character);
        if (range.end == size) spelled += rules_.suffix;
        character = spelled;
      }
      at = range.end;
      if (const auto id = vocabulary_.find(character)) {
        add(*id, range, symbols);
      } else if (!rules_.byte_fallback || !add_fallback(character, range, symbols)) {
        // Without an unknown token what is unknown is left out.
        if (!rules_.unk_token.empty()) add_unknown(word, range, symbols);
      }
    }
  }

  // A character as its bytes, each a token that stands for its place; false when one is lacking.
  bool add_fallback(std::string_view character, ByteRange range,
                    std::vector<Symbol>& symbols) const {
    const auto id_of = [&](char byte) { return of_byte_[static_cast<unsigned char>(byte)]; };
    for (const char byte : character) {
      if (id_of(byte) == none) return false;
    }
    const bool is_bare = character.size() == range.end - range.begin;
    for (std::uint32_t i = 0; i < character.size(); ++i) {
      const ByteRange one = {range.begin + i, range.begin + i + 1};
      add(id_of(character[i]), is_bare ? one : range, symbols);
    }
    return true;
  }

  void consider(std::uint32_t left, ModelScratch& scratch) const {
    const Symbol& symbol = scratch.symbols[left];
    if (symbol.next == none) return;
    const MergeRule* const rule = merges_.find(symbol.id, scratch.symbols[symbol.next].id);
    if (rule != nullptr) scratch.heap.push_back({rule->rank, left, rule->made});
  }

  void merge(ModelScratch& scratch) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    std::vector<Candidate>& heap = scratch.heap;
    heap.clear();
    const auto n = static_cast<std::uint32_t>(symbols.size());
    for (std::uint32_t i = 0; i < n; ++i) {
      symbols[i].previous = i == 0 ? none : i - 1;
      symbols[i].next = i + 1 == n ? none : i + 1;
    }
    for (std::uint32_t i = 0; i < n; ++i) consider(i, scratch);
    std::make_heap(heap.begin(), heap.end(), goes_later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), goes_later);
      const Candidate best = heap.back();
      heap.pop_back();
      Symbol& left = symbols[best.left];
      if (left.id == none || left.next == none) continue;
      Symbol& right = symbols[left.next];
      // Neighbours may have changed since it was put there.
      const MergeRule* const rule = merges_.find(left.id, right.id);
      if (rule == nullptr || rule->made != best.made) continue;
      left.id = best.made;
      left.range.end = right.range.end;
      left.next = right.next;
      right.id = none;
      if (left.next != none) symbols[left.next].previous = best.left;
      for (const std::uint32_t changed : {left.previous, best.left}) {
        if (changed == none) continue;
        const std::size_t before = heap.size();
        consider(changed, scratch);
        if (heap.size() > before) std::push_heap(heap.begin(), heap.end(), goes_later);
      }
    }
  }

  static constexpr std::uint32_t unknown = none - 1;  // in `previous`, until they are linked

  const Vocabulary& vocabulary_;
  BpeRules rules_;
  MergeTable merges_;
  bool cuts_at_spaces_;
  std::array<std::uint32_t, 256> of_byte_{};  // ids
};

[[noreturn]] void throw_merge_error(const TokenizerFile& file, std::size_t rank,
                                    const std::string& what) {
  throw_format_error(file.source, std::nullopt,
                     file.source + ": model.merges[" + std::to_string(rank) + "] " + what);
}

std::uint32_t id_in_merge(const TokenizerFile& file, const Vocabulary& vocabulary, std::size_t rank,
                          std::string_view token) {
  if (const auto id = vocabulary.find(token)) return *id;
  throw_merge_error(file, rank,
                    "has \"" + printable(token, 60) + "\", but the vocabulary has no such token");
}

MergeTable read_merges(const TokenizerFile& file, const Vocabulary& vocabulary,
                       const std::string& prefix) {
  MergeTable table(file.merges.size());
  std::string both;
  for (std::size_t rank = 0; rank < file.merges.size(); ++rank) {
    const std::string_view left = file.left(file.merges[rank]);
    const std::string_view right = file.right(file.merges[rank]);
    if (right.size() < prefix.size()) {
      throw_merge_error(file, rank,
                        "has \"" + printable(right, 60) +
                            "\" on the right, which lacks continuing_subword_prefix");
    }
    both = left;
    both += right.substr(prefix.size());
    const std::uint32_t left_id = id_in_merge(file, vocabulary, rank, left);
    const std::uint32_t right_id = id_in_merge(file, vocabulary, rank, right);
    table.add(left_id, right_id,
              {static_cast<std::uint32_t>(rank), id_in_merge(file, vocabulary, rank, both)});
  }
  return table;
}

// Where no merge has a mark of a space on its right and something else before it, words that begin
// with their marks never join.
bool never_merges_across_spaces(const TokenizerFile& file) {
  return std::none_of(file.merges.begin(), file.merges.end(), [&](const auto& merge) {
    return file.right(merge).starts_with(space_mark) && !file.left(merge).ends_with(space_mark);
  });
}

}  // namespace

std::unique_ptr<TokenModel> read_bpe(const Fields& section, const TokenizerFile& file,
                                     const Vocabulary& vocabulary, bool byte_level) {
  if (section.number_or("dropout", 0) != 0) {
    section.refuse("with a dropout", "models without one: with it the ids of a text are random");
  }
  BpeRules rules;
  rules.unk_token = section.text_or("unk_token", "");
  rules.unk = vocabulary.find(rules.unk_token);
  rules.prefix = section.text_or("continuing_subword_prefix", "");
  rules.suffix = section.text_or("end_of_word_suffix", "");
  rules.fuse_unk = section.boolean_or("fuse_unk", false);
  rules.byte_fallback = section.boolean_or("byte_fallback", false);
  rules.ignore_merges = section.boolean_or("ignore_merges", false);
  rules.byte_level = byte_level;
  if (byte_level && !(rules.prefix.empty() && rules.suffix.empty())) {
    section.refuse("with marks of words behind ByteLevel", "bytes without them");
  }
  const bool cuts = !byte_level && !rules.ignore_merges && rules.prefix.empty() &&
                    rules.suffix.empty() && vocabulary.find(space_mark).has_value() &&
                    never_merges_across_spaces(file);
  MergeTable merges = read_merges(file, vocabulary, rules.prefix);
  return std::make_unique<Bpe>(vocabulary, std::move(rules), std::move(merges), cuts);
}

}  // namespace eckart::detail
