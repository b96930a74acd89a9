#include "eckart/model/tokenizer/normalizer.h"

#include "eckart/io/findings.h"
#include "eckart/model/tokenizer/character_maps.h"
#include "eckart/model/tokenizer/pattern.h"
#include "eckart/model/tokenizer/read_pattern.h"

#include <utility>

namespace eckart::detail {
namespace {

class NormalFormNormalizer : public Normalizer {
 public:
  explicit NormalFormNormalizer(NormalForm form) : form_(form) {}
  void apply(AlignedText& text) const override {
    if (!is_ascii(text.text())) text.transform(normalized(text.characters(), form_));
  }

 private:
  NormalForm form_;
};

class Lowercase : public Normalizer {
 public:
  void apply(AlignedText& text) const override { make_lower(text); }
};

class StripAccents : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    if (!is_ascii(text.text())) keep_if(text, [](char32_t c) { return !is_mark(c); });
  }
};

// What Google's neural translation drops and what it takes for a space.
class Nmt : public Normalizer {
 public:
  void apply(AlignedText& text) const override {
    keep_if(text, [](char32_t c) {
      return !((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
               c == 0x8f || c == 0x9f);
    });
    map(text, [](char32_t c) {
      const bool space = c == 9 || c == 10 || c == 12 || c == 13 || c == 0x1680 ||
                         (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 ||
                         c == 0x2581 || c == 0xfeff || c == 0xfffd;
      return space ? U' ' : c;
    });
  }
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(AlignedText& text) const override {
    const std::vector<char32_t> all = text.characters();
    std::size_t first = 0;
    std::size_t last = all.size();
    std::uint32_t begin = 0;
    auto end = static_cast<std::uint32_t>(text.size());
    const auto bytes = [](char32_t c) { return static_cast<std::uint32_t>(utf8_length(c)); };
    for (; left_ && first < last && is_white_space(all[first]); ++first) begin += bytes(all[first]);
    for (; right_ && last > first && is_white_space(all[last - 1]); --last) {
      end -= bytes(all[last - 1]);
    }
    if (begin == 0 && end == text.size()) return;
    AlignedText kept;
    kept.clear_to_build(end - begin);
    kept.append(text, {begin, end});
    text = std::move(kept);
  }

 private:
  bool left_;
  bool right_;
};

class Replace : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(AlignedText& text) const override { replace(text, pattern_, content_); }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  void apply(AlignedText& text) const override { prepend(text, text_); }

 private:
  std::string text_;
};

constexpr const char* supported =
    "BertNormalizer, NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Replace, Prepend, Nmt, "
    "Sequence";

template <class Type, class... Arguments>
void add(Normalizers& normalizers, Arguments&&... arguments) {
  normalizers.push_back(std::make_unique<Type>(std::forward<Arguments>(arguments)...));
}

BertRules read_bert_rules(const Fields& section) {
  BertRules rules;
  rules.clean_text = section.boolean_or("clean_text", true);
  rules.handle_chinese_chars = section.boolean_or("handle_chinese_chars", true);
  rules.lowercase = section.boolean_or("lowercase", true);
  rules.strip_accents = section.boolean_or("strip_accents", rules.lowercase);
  return rules;
}

}  // namespace

void read_normalizers(const Fields& section, Normalizers& normalizers) {
  const std::string type = section.type();
  if (type == "Sequence") {
    for (const Fields& part : section.list("normalizers")) read_normalizers(part, normalizers);
  } else if (type == "BertNormalizer") {
    normalizers.push_back(bert_normalizer(read_bert_rules(section)));
  } else if (type == "NFC") {
    add<NormalFormNormalizer>(normalizers, NormalForm::nfc);
  } else if (type == "NFD") {
    add<NormalFormNormalizer>(normalizers, NormalForm::nfd);
  } else if (type == "NFKC") {
    add<NormalFormNormalizer>(normalizers, NormalForm::nfkc);
  } else if (type == "NFKD") {
    add<NormalFormNormalizer>(normalizers, NormalForm::nfkd);
  } else if (type == "Lowercase") {
    add<Lowercase>(normalizers);
  } else if (type == "StripAccents") {
    add<StripAccents>(normalizers);
  } else if (type == "Strip") {
    add<Strip>(normalizers, section.boolean_or("strip_left", true),
               section.boolean_or("strip_right", true));
  } else if (type == "Replace") {
    add<Replace>(normalizers, read_pattern(section), section.text("content"));
  } else if (type == "Prepend") {
    add<Prepend>(normalizers, section.text("prepend"));
  } else if (type == "Nmt") {
    add<Nmt>(normalizers);
  } else {
    section.refuse("of type \"" + printable(type, 60) + '"', supported);
  }
}

void apply_all(const Normalizers& normalizers, AlignedText& text) {
  for (const auto& normalizer : normalizers) normalizer->apply(text);
}

void prepend(AlignedText& text, std::string_view inserted) {
  if (text.empty()) return;
  AlignedText made;
  made.clear_to_build(text.size() + inserted.size());
  made.append(inserted, text.place({0, 1}));
  made.append(text, {0, static_cast<std::uint32_t>(text.size())});
  text = std::move(made);
}

}  // namespace eckart::detail
