// A text under change that knows, for each byte, which bytes of the original it stands for.
// Internal.
#pragma once

#include "eckart/model/tokenizer.h"
#include "eckart/model/tokenizer/characters.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// Bytes of a text, end exclusive.
struct ByteRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Until something changes it, it is a view of the original and costs nothing; afterwards 9 bytes a
/// byte. An inserted character has the place of the one before it, or of the one that it goes
/// before at the start.
class AlignedText {
 public:
  AlignedText() = default;
  /// The bytes [range.begin, range.end) of `original`, which must outlive it and be valid UTF-8 of
  /// less than 4 GiB.
  AlignedText(std::string_view original, ByteRange range);
  AlignedText(const AlignedText&) = delete;
  AlignedText& operator=(const AlignedText&) = delete;
  AlignedText(AlignedText&&) = default;
  AlignedText& operator=(AlignedText&&) = default;
  ~AlignedText() = default;

  std::string_view text() const { return is_view_ ? view_ : std::string_view(text_); }
  std::size_t size() const { return text().size(); }
  bool empty() const { return text().empty(); }
  /// Whether it still is the original's bytes.
  bool is_unchanged() const { return is_view_; }

  /// What bytes of the text stand for in the original, in whole characters.
  TokenSpan place(ByteRange range) const;

  /// Puts `changes` in the place of the whole text; of its characters the first
  /// `n_removed_at_start` are dropped before.
  void transform(const std::vector<Change>& changes, std::size_t n_removed_at_start = 0);
  /// The characters of the text.
  std::vector<char32_t> characters() const;

  /// Makes it an owner of no bytes, to be built of pieces of another text.
  void clear_to_build(std::size_t capacity);
  /// Appends bytes of `other` with their places.
  void append(const AlignedText& other, ByteRange range);
  /// Appends text that stands for the bytes [begin, end) of the original.
  void append(std::string_view inserted, TokenSpan place);
  /// Appends a character likewise.
  void append(char32_t c, TokenSpan place);

 private:
  bool is_view_ = true;
  std::string_view view_;
  std::uint32_t origin_ = 0;  // of the view in the original
  std::string text_;
  std::vector<ByteRange> places_;  // one a byte of text_
};

}  // namespace eckart::detail
