#include "eckart/model/tokenizer/post_processor.h"

#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/byte_letters.h"
#include "eckart/model/tokenizer/characters.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace eckart::detail {
namespace {

// Ids to be put somewhere, or the place of the text.
struct TemplatePart {
  bool is_text = false;
  std::vector<std::uint32_t> ids;
};

class Template : public PostProcessor {
 public:
  explicit Template(std::vector<TemplatePart> parts) : parts_(std::move(parts)) {}

  void apply(DraftEncoding& draft) const override {
    if (!draft.special_tokens) return;
    Encoding whole;
    for (const TemplatePart& part : parts_) {
      if (part.is_text) {
        whole.ids.insert(whole.ids.end(), draft.encoding.ids.begin(), draft.encoding.ids.end());
        whole.spans.insert(whole.spans.end(), draft.encoding.spans.begin(),
                           draft.encoding.spans.end());
      }
      whole.ids.insert(whole.ids.end(), part.ids.begin(), part.ids.end());
      whole.spans.resize(whole.ids.size());
    }
    draft.encoding = std::move(whole);
  }

 private:
  std::vector<TemplatePart> parts_;
};

bool is_space(char32_t c) { return is_white_space(c) || c == letter_of_byte(' '); }

// Takes the spaces at the ends of tokens out of their places, as many characters as they have.
class TrimSpans : public PostProcessor {
 public:
  explicit TrimSpans(bool add_prefix_space) : add_prefix_space_(add_prefix_space) {}

  void apply(DraftEncoding& draft) const override {
    for (std::size_t i = 0; i < draft.encoding.ids.size(); ++i) {
      trim(draft, static_cast<std::uint32_t>(draft.encoding.ids[i]), i == 0,
           draft.encoding.spans[i]);
    }
  }

 private:
  void trim(const DraftEncoding& draft, std::uint32_t id, bool is_first, TokenSpan& span) const {
    // An added token has the text's spaces, not the vocabulary's.
    const std::string_view spelled = draft.added.token(id) != nullptr
                                         ? draft.text.substr(span.begin, span.end - span.begin)
                                         : std::string_view(draft.vocabulary.token(id));
    std::size_t leading = 0;
    std::size_t trailing = 0;
    bool only_spaces = true;
    for (std::string_view rest = spelled; !rest.empty();) {
      const Utf8Character next = decode_utf8(rest);
      const bool space = is_space(next.code);
      only_spaces = only_spaces && space;
      if (only_spaces) ++leading;
      trailing = space ? trailing + 1 : 0;
      rest.remove_prefix(next.length);
    }
    // The space that was put before the text is no part of it.
    if (leading == 1 && add_prefix_space_ && (is_first || span.begin == 0)) leading = 0;
    for (; leading > 0 && span.begin < span.end; --leading) {
      span.begin += decode_utf8(draft.text.substr(span.begin)).length;
    }
    for (; trailing > 0 && span.end > span.begin; --trailing) {
      do --span.end;
      while (span.end > span.begin &&
             (static_cast<unsigned char>(draft.text[span.end]) & 0xc0U) == 0x80U);
    }
  }

  bool add_prefix_space_;
};

std::uint32_t id_of(const Fields& field) {
  const std::int64_t id = field.as_integer();
  if (id >= static_cast<std::int64_t>(Vocabulary::id_limit)) {
    field.fail("is " + std::to_string(id) + ", but ids are below 2^22 = 4,194,304");
  }
  return static_cast<std::uint32_t>(id);
}

// ["[CLS]", 101]
std::uint32_t id_of_pair(const Fields& section, std::string_view name) {
  const std::vector<Fields> pair = section.list(name);
  if (pair.size() != 2) section.fail("has a " + std::string(name) + " that is no [token, id]");
  return id_of(pair[1]);
}

std::unique_ptr<PostProcessor> around_text(std::uint32_t before, std::uint32_t behind) {
  return std::make_unique<Template>(
      std::vector<TemplatePart>{{false, {before}}, {true, {}}, {false, {behind}}});
}

std::vector<TemplatePart> read_template(const Fields& section) {
  std::map<std::string, std::vector<std::uint32_t>> special;
  if (section.has("special_tokens")) {
    for (const auto& [name, token] : section.section("special_tokens").members()) {
      for (const Fields& id : token.list("ids")) special[name].push_back(id_of(id));
    }
  }
  std::vector<TemplatePart> parts;
  for (const Fields& part : section.list("single")) {
    if (part.has("SpecialToken")) {
      const std::string name = part.section("SpecialToken").text("id");
      const auto found = special.find(name);
      if (found == special.end()) {
        part.fail("is \"" + printable(name, 60) + "\", which special_tokens lacks");
      }
      parts.push_back({false, found->second});
    } else {
      const std::string which = part.section("Sequence").text("id");
      if (which != "A")
        part.fail("is the sequence " + printable(which, 60) + ", but one text is A");
      parts.push_back({true, {}});
    }
  }
  // More than once, it would grow with the square of their number.
  if (std::count_if(parts.begin(), parts.end(), [](const auto& part) { return part.is_text; }) >
      1) {
    section.fail("has the text twice in single, but it is one text");
  }
  return parts;
}

constexpr const char* supported =
    "TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing, Sequence";

}  // namespace

std::unique_ptr<PostProcessor> bert_processor(std::uint32_t cls, std::uint32_t sep) {
  return around_text(cls, sep);
}

void read_post_processors(const Fields& section, PostProcessors& post_processors) {
  const std::string type = section.type();
  const auto trim = [&] {
    if (!section.boolean_or("trim_offsets", true)) return;
    post_processors.push_back(
        std::make_unique<TrimSpans>(section.boolean_or("add_prefix_space", true)));
  };
  if (type == "Sequence") {
    for (const Fields& part : section.list("processors")) {
      read_post_processors(part, post_processors);
    }
  } else if (type == "ByteLevel") {
    trim();
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    if (type == "RobertaProcessing") trim();
    post_processors.push_back(around_text(id_of_pair(section, "cls"), id_of_pair(section, "sep")));
  } else if (type == "TemplateProcessing") {
    post_processors.push_back(std::make_unique<Template>(read_template(section)));
  } else {
    section.refuse("of type \"" + printable(type, 60) + '"', supported);
  }
}

}  // namespace eckart::detail
