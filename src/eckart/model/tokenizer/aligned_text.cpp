#include "eckart/model/tokenizer/aligned_text.h"

#include "eckart/io/utf8.h"

#include <utility>

namespace eckart::detail {
namespace {

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

ByteRange as_range(TokenSpan span) {
  return {static_cast<std::uint32_t>(span.begin), static_cast<std::uint32_t>(span.end)};
}

}  // namespace

AlignedText::AlignedText(std::string_view original, ByteRange range)
    : view_(original.substr(range.begin, range.end - range.begin)), origin_(range.begin) {}

TokenSpan AlignedText::place(ByteRange range) const {
  if (range.begin >= range.end) {
    if (empty()) return {origin_, origin_};
    const std::size_t at = range.begin < size() ? place({range.begin, range.begin + 1}).begin
                                                : place({range.begin - 1, range.begin}).end;
    return {at, at};
  }
  if (!is_view_) return {places_[range.begin].begin, places_[range.end - 1].end};
  std::size_t begin = range.begin;
  std::size_t end = range.end;
  while (begin > 0 && is_continuation(view_[begin])) --begin;
  while (end < view_.size() && is_continuation(view_[end])) ++end;
  return {origin_ + begin, origin_ + end};
}

std::vector<char32_t> AlignedText::characters() const {
  std::vector<char32_t> all;
  all.reserve(size());
  for (std::string_view rest = text(); !rest.empty();) {
    const Utf8Character next = decode_utf8(rest);
    all.push_back(next.code);
    rest.remove_prefix(next.length);
  }
  return all;
}

void AlignedText::transform(const std::vector<Change>& changes, std::size_t n_removed_at_start) {
  AlignedText made;
  made.clear_to_build(size() + size() / 8);
  std::size_t at = 0;
  const std::string_view before = text();
  const auto skip = [&] {
    if (at < before.size()) at += decode_utf8(before.substr(at)).length;
  };
  for (std::size_t i = 0; i < n_removed_at_start; ++i) skip();
  for (const Change& next : changes) {
    const auto here = static_cast<std::uint32_t>(at);
    TokenSpan where;
    if (next.change > 0) {
      where = at == 0 ? place({0, 0}) : place({here - 1, here});
    } else if (at < before.size()) {
      where = place({here, here + 1});
    }
    made.append(next.code, where);
    if (next.change > 0) continue;
    for (int i = next.change; i <= 0; ++i) skip();
  }
  *this = std::move(made);
}

void AlignedText::clear_to_build(std::size_t capacity) {
  is_view_ = false;
  text_.clear();
  places_.clear();
  text_.reserve(capacity);
  places_.reserve(capacity);
}

void AlignedText::append(const AlignedText& other, ByteRange range) {
  text_ += other.text().substr(range.begin, range.end - range.begin);
  if (!other.is_view_) {
    places_.insert(places_.end(), other.places_.begin() + range.begin,
                   other.places_.begin() + range.end);
    return;
  }
  for (std::uint32_t at = range.begin; at < range.end;) {
    const auto length = static_cast<std::uint32_t>(decode_utf8(other.view_.substr(at)).length);
    const ByteRange where = {other.origin_ + at, other.origin_ + at + length};
    for (std::uint32_t i = 0; i < length; ++i) places_.push_back(where);
    at += length;
  }
}

void AlignedText::append(std::string_view inserted, TokenSpan place) {
  text_ += inserted;
  places_.insert(places_.end(), inserted.size(), as_range(place));
}

void AlignedText::append(char32_t c, TokenSpan place) {
  append_utf8(c, text_);
  places_.resize(text_.size(), as_range(place));
}

}  // namespace eckart::detail
