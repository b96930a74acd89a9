#include "eckart/model/tokenizer/decoder.h"

#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/byte_letters.h"
#include "eckart/model/tokenizer/metaspace.h"
#include "eckart/model/tokenizer/pattern.h"
#include "eckart/model/tokenizer/read_pattern.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace eckart::detail {
namespace {

using Part = DecodeDraft::Part;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::size_t at = text.find(from);
  if (at == std::string::npos) return;
  std::string made;
  std::size_t done = 0;
  for (; at != std::string::npos; at = text.find(from, done)) {
    made.append(text, done, at - done);
    made += to;
    done = at + from.size();
  }
  made.append(text, done);
  text = std::move(made);
}

class ByteLevelDecoder : public Decoder {
 public:
  void apply(DecodeDraft& draft) const override {
    for (Part& part : draft.parts) {
      if (part.is_added) continue;
      if (auto bytes = bytes_of_letters(part.text)) part.text = std::move(*bytes);
    }
  }
};

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(DecodeDraft& draft) const override {
    for (std::size_t i = 0; i < draft.parts.size(); ++i) {
      std::string& text = draft.parts[i].text;
      if (i > 0 || !draft.at_start) {
        if (!prefix_.empty() && text.starts_with(prefix_)) {
          text.erase(0, prefix_.size());
        } else {
          text.insert(0, " ");
        }
      }
      if (cleanup_) clean(text);
    }
  }

 private:
  // The spaces that English has not.
  static void clean(std::string& text) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> changes = {
        {{" .", "."},
         {" ?", "?"},
         {" !", "!"},
         {" ,", ","},
         {" ' ", "'"},
         {" n't", "n't"},
         {" 'm", "'m"},
         {" do not", " don't"},
         {" 's", "'s"},
         {" 've", "'ve"},
         {" 're", "'re"}}};
    for (const auto& [from, to] : changes) replace_all(text, from, to);
  }

  std::string prefix_;
  bool cleanup_;
};

class MetaspaceDecoder : public Decoder {
 public:
  explicit MetaspaceDecoder(MetaspaceRules rules) : rules_(std::move(rules)) {}
  void apply(DecodeDraft& draft) const override {
    for (std::size_t i = 0; i < draft.parts.size(); ++i) {
      const bool drops =
          i == 0 && draft.at_start && rules_.prepend != MetaspaceRules::Prepend::never;
      replace_all(draft.parts[i].text, rules_.replacement, drops ? "" : " ");
    }
  }

 private:
  MetaspaceRules rules_;
};

class ByteFallbackDecoder : public Decoder {
 public:
  void apply(DecodeDraft& draft) const override {
    for (Part& part : draft.parts) {
      if (const auto byte = byte_of(part.text)) part.text.assign(1, *byte);
    }
  }

 private:
  static std::optional<char> byte_of(std::string_view token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
    unsigned value = 0;
    for (const char digit : token.substr(3, 2)) {
      const bool is_decimal = digit >= '0' && digit <= '9';
      const char small = static_cast<char>(digit | 0x20);
      if (!is_decimal && (small < 'a' || small > 'f')) return std::nullopt;
      value = value * 16 + static_cast<unsigned>(is_decimal ? digit - '0' : small - 'a' + 10);
    }
    return static_cast<char>(value);
  }
};

class FuseDecoder : public Decoder {
 public:
  void apply(DecodeDraft& draft) const override {
    std::string whole;
    for (const Part& part : draft.parts) whole += part.text;
    draft.parts.assign(1, {std::move(whole), false});
    draft.is_fused = true;
  }
};

class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(DecodeDraft& draft) const override {
    // Behind Fuse it means the ends of the text, which a token in its midst has not.
    const bool strips_start = !draft.is_fused || draft.at_start;
    const bool strips_stop = !draft.is_fused || draft.at_end;
    for (Part& part : draft.parts) {
      std::string& text = part.text;
      std::size_t begin = 0;
      for (std::size_t i = 0; strips_start && i < start_; ++i) {
        if (text.compare(begin, content_.size(), content_) != 0) break;
        begin += content_.size();
      }
      std::size_t end = text.size();
      for (std::size_t i = 0; strips_stop && i < stop_; ++i) {
        if (end < begin + content_.size() ||
            text.compare(end - content_.size(), content_.size(), content_) != 0) {
          break;
        }
        end -= content_.size();
      }
      text = text.substr(begin, end - begin);
    }
  }

 private:
  std::string content_;
  std::size_t start_;
  std::size_t stop_;
};

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(DecodeDraft& draft) const override {
    for (Part& part : draft.parts) {
      // Patterns are for characters; bytes that are none stay as they are.
      if (find_invalid_utf8(part.text)) continue;
      std::string made;
      std::size_t done = 0;
      pattern_.for_each_match(part.text, [&](ByteRange match) {
        made.append(part.text, done, match.begin - done);
        made += content_;
        done = match.end;
      });
      if (done == 0) continue;
      made.append(part.text, done);
      part.text = std::move(made);
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(DecodeDraft& draft) const override {
    for (std::size_t i = 0; i < draft.parts.size(); ++i) {
      const bool is_last = i + 1 == draft.parts.size() && draft.at_end;
      replace_all(draft.parts[i].text, suffix_, is_last ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

constexpr const char* supported =
    "ByteLevel, WordPiece, Metaspace, ByteFallback, Fuse, Strip, Replace, BPEDecoder, Sequence";

std::unique_ptr<Decoder> read_strip(const Fields& section) {
  const std::string content = section.text("content");
  if (content.empty()) section.fail("has an empty content, but it is one character");
  return std::make_unique<StripDecoder>(content,
                                        static_cast<std::size_t>(section.integer_or("start", 0)),
                                        static_cast<std::size_t>(section.integer_or("stop", 0)));
}

}  // namespace

std::unique_ptr<Decoder> word_piece_decoder(std::string prefix, bool cleanup) {
  return std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup);
}

void read_decoders(const Fields& section, Decoders& decoders) {
  const std::string type = section.type();
  if (type == "Sequence") {
    for (const Fields& part : section.list("decoders")) read_decoders(part, decoders);
  } else if (type == "ByteLevel") {
    decoders.push_back(std::make_unique<ByteLevelDecoder>());
  } else if (type == "WordPiece") {
    decoders.push_back(
        word_piece_decoder(section.text_or("prefix", "##"), section.boolean_or("cleanup", true)));
  } else if (type == "Metaspace") {
    decoders.push_back(std::make_unique<MetaspaceDecoder>(read_metaspace_rules(section)));
  } else if (type == "ByteFallback") {
    decoders.push_back(std::make_unique<ByteFallbackDecoder>());
  } else if (type == "Fuse") {
    decoders.push_back(std::make_unique<FuseDecoder>());
  } else if (type == "Strip") {
    decoders.push_back(read_strip(section));
  } else if (type == "Replace") {
    decoders.push_back(
        std::make_unique<ReplaceDecoder>(read_pattern(section), section.text("content")));
  } else if (type == "BPEDecoder") {
    decoders.push_back(std::make_unique<BpeDecoder>(section.text_or("suffix", "</w>")));
  } else {
    section.refuse("of type \"" + printable(type, 60) + '"', supported);
  }
}

std::string decoded(const Decoders& decoders, DecodeDraft draft) {
  for (const auto& decoder : decoders) decoder->apply(draft);
  std::string text;
  for (std::size_t i = 0; i < draft.parts.size(); ++i) {
    if (decoders.empty() && (i > 0 || !draft.at_start)) text += ' ';
    text += draft.parts[i].text;
  }
  return text;
}

}  // namespace eckart::detail
