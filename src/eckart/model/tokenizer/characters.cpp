#include "eckart/model/tokenizer/characters.h"

#include <algorithm>
#include <array>
#include <utility>

#include <utf8proc.h>

namespace eckart::detail {
namespace {

utf8proc_int32_t as_signed(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

utf8proc_category_t category(char32_t c) { return utf8proc_category(as_signed(c)); }

bool is_between(utf8proc_category_t value, utf8proc_category_t first, utf8proc_category_t last) {
  return value >= first && value <= last;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

// Marks between starters in canonical order, each with its change.
void sort_marks(std::vector<Change>& text) {
  const auto is_starter = [](const Change& c) { return combining_class(c.code) == 0; };
  auto begin = text.begin();
  while (begin != text.end()) {
    begin = std::find_if_not(begin, text.end(), is_starter);
    const auto end = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, end, [](const Change& a, const Change& b) {
      return combining_class(a.code) < combining_class(b.code);
    });
    begin = end;
  }
}

// UAX #15, canonical composition: a mark joins its starter unless one of its own or a higher class
// stands between.
std::vector<Change> composed(const std::vector<Change>& text) {
  std::vector<Change> out;
  out.reserve(text.size());
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t starter = none;
  int last_class = -1;  // of the marks behind the starter; -1: none yet
  for (const Change& next : text) {
    const int own_class = combining_class(next.code);
    if (starter != none && last_class < own_class) {
      if (const auto made = compose(out[starter].code, next.code)) {
        out[starter] = {*made, out[starter].change + next.change - 1};
        continue;
      }
    }
    if (own_class == 0) {
      starter = out.size();
      last_class = -1;
    } else {
      last_class = own_class;
    }
    out.push_back(next);
  }
  return out;
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  return is_between(category(c), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return is_between(category(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN; }

bool is_mark(char32_t c) {
  return c >= 0x300 && is_between(category(c), UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
}

bool is_control(char32_t c) {
  if (c < 0x80) return c < 0x20 || c == 0x7f;
  return is_between(category(c), UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO);
}

bool is_word_character(char32_t c) {
  if (c < 0x80) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
  }
  const utf8proc_category_t of = category(c);
  // Circled letters are alphabetic symbols.
  return is_between(of, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_ND) || of == UTF8PROC_CATEGORY_NL ||
         of == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) ||
         (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
         (c >= 0x1f170 && c <= 0x1f189);
}

bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

LowerCase lower_case(char32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + 32 : c};
  if (c == 0x130) return {'i', 0x307};
  return {static_cast<char32_t>(utf8proc_tolower(as_signed(c)))};
}

void append_decomposition(char32_t c, bool compatibility, std::vector<char32_t>& out) {
  std::array<utf8proc_int32_t, 32> parts{};
  const int options = UTF8PROC_DECOMPOSE | (compatibility ? UTF8PROC_COMPAT : 0);
  const utf8proc_ssize_t n = utf8proc_decompose_char(
      as_signed(c), parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
      static_cast<utf8proc_option_t>(options), nullptr);
  if (n <= 0 || n > static_cast<utf8proc_ssize_t>(parts.size())) {
    out.push_back(c);
    return;
  }
  for (utf8proc_ssize_t i = 0; i < n; ++i) {
    out.push_back(static_cast<char32_t>(parts[static_cast<std::size_t>(i)]));
  }
}

int combining_class(char32_t c) {
  return c < 0x300 ? 0 : utf8proc_get_property(as_signed(c))->combining_class;
}

std::optional<char32_t> compose(char32_t first, char32_t second) {
  std::array<utf8proc_int32_t, 3> pair = {as_signed(first), as_signed(second), 0};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  if (utf8proc_normalize_utf32(pair.data(), 2, options) != 1) return std::nullopt;
  return static_cast<char32_t>(pair[0]);
}

std::vector<Change> normalized(const std::vector<char32_t>& text, NormalForm form) {
  const bool compatibility = form == NormalForm::nfkc || form == NormalForm::nfkd;
  std::vector<Change> out;
  out.reserve(text.size());
  std::vector<char32_t> parts;
  for (const char32_t c : text) {
    if (c < 0x80) {
      out.push_back({c, 0});
      continue;
    }
    parts.clear();
    append_decomposition(c, compatibility, parts);
    for (std::size_t i = 0; i < parts.size(); ++i) out.push_back({parts[i], i == 0 ? 0 : 1});
  }
  sort_marks(out);
  if (form == NormalForm::nfd || form == NormalForm::nfkd) return out;
  return composed(out);
}

std::size_t utf8_length(char32_t c) {
  return c < 0x80 ? 1U : c < 0x800 ? 2U : c < 0x10000 ? 3U : 4U;
}

void append_utf8(char32_t c, std::string& text) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0U | (c >> 6U));
    put(0x80U | (c & 0x3fU));
  } else if (c < 0x10000) {
    put(0xe0U | (c >> 12U));
    put(0x80U | ((c >> 6U) & 0x3fU));
    put(0x80U | (c & 0x3fU));
  } else {
    put(0xf0U | (c >> 18U));
    put(0x80U | ((c >> 12U) & 0x3fU));
    put(0x80U | ((c >> 6U) & 0x3fU));
    put(0x80U | (c & 0x3fU));
  }
}

}  // namespace eckart::detail
