#include "eckart/model/tokenizer/byte_letters.h"

#include "eckart/io/utf8.h"
#include "eckart/model/tokenizer/characters.h"

#include <array>
#include <cstdint>

namespace eckart::detail {
namespace {

constexpr std::size_t n_letters = 0x144;  // the last one's code + 1

struct Letters {
  std::array<char32_t, 256> of_byte{};
  std::array<std::int16_t, n_letters> of_letter{};  // -1: none
};

constexpr bool stands_for_itself(std::size_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr Letters letters_table() {
  Letters table;
  table.of_letter.fill(-1);
  char32_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char32_t letter = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    table.of_byte[byte] = letter;
    table.of_letter[letter] = static_cast<std::int16_t>(byte);
  }
  return table;
}

constexpr Letters table = letters_table();

}  // namespace

char32_t letter_of_byte(unsigned char byte) { return table.of_byte[byte]; }

std::optional<unsigned char> byte_of_letter(char32_t letter) {
  if (letter >= n_letters || table.of_letter[letter] < 0) return std::nullopt;
  return static_cast<unsigned char>(table.of_letter[letter]);
}

std::string letters_of(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() * 2);
  for (const char byte : bytes)
    append_utf8(letter_of_byte(static_cast<unsigned char>(byte)), letters);
  return letters;
}

std::optional<std::string> bytes_of_letters(std::string_view letters) {
  std::string bytes;
  bytes.reserve(letters.size());
  while (!letters.empty()) {
    const Utf8Character next = decode_utf8(letters);
    const auto byte = byte_of_letter(next.code);
    if (!byte) return std::nullopt;
    bytes += static_cast<char>(*byte);
    letters.remove_prefix(next.length);
  }
  return bytes;
}

}  // namespace eckart::detail
