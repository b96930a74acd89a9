// BERT's normalizer in one pass: ASCII is mapped by itself, what lies between is taken run by run.
#include "eckart/model/tokenizer/character_maps.h"
#include "eckart/model/tokenizer/normalizer.h"

#include <utility>

namespace eckart::detail {
namespace {

bool is_dropped(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == 0xfffd || is_control(c);
}

// Chinese characters between spaces that have their place.
void set_chinese_apart(AlignedText& run) {
  AlignedText made;
  made.clear_to_build(run.size() * 2);
  for_each_character(run.text(), [&](char32_t c, ByteRange range) {
    if (!is_chinese(c)) return made.append(run, range);
    made.append(U' ', run.place(range));
    made.append(run, range);
    made.append(U' ', run.place(range));
  });
  run = std::move(made);
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(const BertRules& rules) : rules_(rules) {}

  void apply(AlignedText& text) const override {
    if (stays(text.text())) return;
    AlignedText made;
    made.clear_to_build(text.size() + text.size() / 8);
    const std::string_view before = text.text();
    const auto size = static_cast<std::uint32_t>(before.size());
    for (std::uint32_t at = 0; at < size;) {
      const std::uint32_t begin = at;
      if (is_ascii_byte(before[at])) {
        append_ascii(before[at], text, at, made);
        ++at;
        continue;
      }
      while (at < size && !is_ascii_byte(before[at])) ++at;
      AlignedText run;
      run.clear_to_build(at - begin);
      run.append(text, {begin, at});
      apply_to_run(run);
      made.append(run, {0, static_cast<std::uint32_t>(run.size())});
    }
    text = std::move(made);
  }

 private:
  static bool is_ascii_byte(char c) { return static_cast<unsigned char>(c) < 0x80; }

  // What ASCII becomes, or 0 where it is dropped.
  char mapped(char c) const {
    const auto code = static_cast<char32_t>(static_cast<unsigned char>(c));
    if (rules_.clean_text) {
      if (is_dropped(code)) return 0;
      if (is_white_space(code)) return ' ';
    }
    return rules_.lowercase ? static_cast<char>(lower_case(code).first) : c;
  }
  bool stays(std::string_view text) const {
    for (const char c : text) {
      if (!is_ascii_byte(c) || mapped(c) != c || c == 0) return false;
    }
    return true;
  }
  void append_ascii(char c, const AlignedText& text, std::uint32_t at, AlignedText& made) const {
    const char now = mapped(c);
    if (now == 0 && rules_.clean_text) return;
    made.append(std::string_view(&now, 1), text.place({at, at + 1}));
  }

  // Canonical order never moves a mark across ASCII, so that a run can be taken by itself.
  void apply_to_run(AlignedText& run) const {
    if (rules_.clean_text) {
      keep_if(run, [](char32_t c) { return !is_dropped(c); });
      map(run, [](char32_t c) { return is_white_space(c) ? U' ' : c; });
    }
    if (rules_.handle_chinese_chars) set_chinese_apart(run);
    if (rules_.strip_accents) {
      run.transform(normalized(run.characters(), NormalForm::nfd));
      keep_if(run, [](char32_t c) { return !is_nonspacing_mark(c); });
    }
    if (rules_.lowercase) make_lower(run);
  }

  BertRules rules_;
};

}  // namespace

std::unique_ptr<Normalizer> bert_normalizer(const BertRules& rules) {
  return std::make_unique<BertNormalizer>(rules);
}

}  // namespace eckart::detail
