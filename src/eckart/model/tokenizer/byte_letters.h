// The letters by which GPT-2's vocabulary spells bytes: printable Latin-1 stands for itself, all
// else for U+0100 and up, in order. Internal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eckart::detail {

/// The letter of a byte: U+0120, `Ġ`, of a space.
char32_t letter_of_byte(unsigned char byte);
/// The byte of a letter, or nothing.
std::optional<unsigned char> byte_of_letter(char32_t letter);
/// A text spelled in letters.
std::string letters_of(std::string_view bytes);
/// The bytes of a text whose every character is such a letter, or nothing.
std::optional<std::string> bytes_of_letters(std::string_view letters);

}  // namespace eckart::detail
