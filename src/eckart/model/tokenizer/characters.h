// What Unicode says of a character, in the words of the tokenizers' rules. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eckart::detail {

/// The property White_Space.
bool is_white_space(char32_t c);
/// ASCII's punctuation, `$` and `+` included, and the categories P*.
bool is_punctuation(char32_t c);
/// Categories Nd, Nl and No.
bool is_number(char32_t c);
/// Category Mn.
bool is_nonspacing_mark(char32_t c);
/// Categories Mn, Mc and Me.
bool is_mark(char32_t c);
/// Categories Cc, Cf, Cs and Co; not what is unassigned.
bool is_control(char32_t c);
/// Letters, marks, decimal digits, connectors and joiners: `\w` of UTS #18.
bool is_word_character(char32_t c);
/// The blocks of Chinese characters that BERT's tokenizer sets apart.
bool is_chinese(char32_t c);

/// The lower case of a character, by its full mapping: only U+0130 has two characters.
struct LowerCase {
  char32_t first = 0;
  char32_t second = 0;  // or 0
};
LowerCase lower_case(char32_t c);

/// A character of a normalized text. `change` says what it takes of the text before: 0 one
/// character, 1 none (it was inserted), -n one and the n that follow it.
struct Change {
  char32_t code = 0;
  int change = 0;
};

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Appends the characters of a character's decomposition, not yet in canonical order.
void append_decomposition(char32_t c, bool compatibility, std::vector<char32_t>& out);
int combining_class(char32_t c);
/// The character that two canonically make.
std::optional<char32_t> compose(char32_t first, char32_t second);
/// A normal form of a text, character by character. UAX #15, by the tables of utf8proc.
std::vector<Change> normalized(const std::vector<char32_t>& text, NormalForm form);

void append_utf8(char32_t c, std::string& text);
std::size_t utf8_length(char32_t c);

}  // namespace eckart::detail
