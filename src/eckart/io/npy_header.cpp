#include "eckart/io/findings.h"
#include "eckart/io/npy.h"
#include "eckart/io/npy_descr.h"
#include "eckart/io/npy_literal.h"
#include "eckart/io/utf8.h"
#include "eckart/io/validate.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::uint64_t max_text_bytes = 10'000;  // NumPy reads no longer header without `pickle`
constexpr std::uint64_t old_alignment = 16;       // of the data; 64 since NumPy 1.14
constexpr std::size_t max_rank = 64;              // NumPy 2; 32 before
constexpr const char* truncated_hint = "copy or download it again";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

std::string counted_bytes(std::uint64_t n) {
  return std::to_string(n) + (n == 1 ? " byte" : " bytes");
}

// Bytes as they are given in a file's hex dump.
std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    if (!text.empty()) text += ' ';
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, std::uint64_t total_bytes, const std::string& name,
               Findings& findings)
      : bytes_(bytes), total_bytes_(total_bytes), name_(name), findings_(findings) {}

  std::optional<NpyHeader> read() {
    std::string_view text;
    if (!check_magic() || !find_text(text) || !parse(text)) return std::nullopt;
    check_padding(text);
    if (!check_size()) return std::nullopt;
    if (const auto obstacle = npy_obstacle(header_.descr, header_.dtype)) {
      warn("npy_dtype", obstacle->message, obstacle->hint);
    }
    return std::move(header_);
  }

 private:
  bool check_magic() {
    const std::span<const std::byte> begin =
        bytes_.first(std::min<std::size_t>(bytes_.size(), magic.size()));
    if (text_of(begin) == magic) return true;
    if (const auto mistaken = recognize(bytes_)) {
      return error(mistaken->rule, mistaken->message, mistaken->hint);
    }
    range(0, begin.size());
    return error("npy_magic",
                 (begin.empty() ? "the file is empty" : "the file begins with " + hex(begin)) +
                     ", but an .npy file begins with " + hex(std::as_bytes(std::span(magic))));
  }

  // Version and length; `text` becomes the header's text.
  bool find_text(std::string_view& text) {
    if (total_bytes_ < 10) return too_short(10);
    const auto version = bytes_.subspan(magic.size(), 2);
    header_.major_version = std::to_integer<int>(version[0]);
    range(6, 8);
    if (version[1] != std::byte{0} || header_.major_version < 1 || header_.major_version > 3) {
      return error("npy_version", "the version is " + std::to_string(header_.major_version) + "." +
                                      std::to_string(std::to_integer<int>(version[1])) +
                                      ", but there are only 1.0, 2.0 and 3.0");
    }
    const std::uint64_t length_bytes = header_.major_version == 1 ? 2 : 4;
    const std::uint64_t begin = 8 + length_bytes;
    if (total_bytes_ < begin) return too_short(begin);
    const std::uint64_t length = little_endian(bytes_.subspan(8, length_bytes));
    range(8, begin);
    if (length > max_text_bytes) {
      return error("npy_header_length", "the header is declared as " + std::to_string(length) +
                                            " bytes long, but NumPy and Eckart read at most " +
                                            std::to_string(max_text_bytes));
    }
    header_.data_begin = begin + length;
    if (header_.data_begin > total_bytes_) return too_short(header_.data_begin);
    text = text_of(bytes_.subspan(begin, length));
    text_begin_ = begin;
    return true;
  }

  bool too_short(std::uint64_t wanted) {
    range(0, total_bytes_);
    return error("npy_header_length",
                 "the header takes " + std::to_string(wanted) + " bytes, but the file has " +
                     std::to_string(total_bytes_) + ": " + counted_bytes(wanted - total_bytes_) +
                     " missing",
                 truncated_hint);
  }

  bool parse(std::string_view text) {
    range(text_begin_, header_.data_begin);
    if (header_.major_version == 3) {
      if (const auto at = find_invalid_utf8(text)) {
        return header_error("the header is not UTF-8 at byte " + std::to_string(text_begin_ + *at));
      }
    }
    const NpyDict dict = parse_npy_dict(text);
    if (!dict.error.empty()) {
      return header_error("at byte " + std::to_string(text_begin_ + dict.error_at) +
                          " of the header: " + dict.error);
    }
    const NpyLiteral* descr = nullptr;
    const NpyLiteral* fortran_order = nullptr;
    const NpyLiteral* shape = nullptr;
    for (const auto& [key, value] : dict.entries) {
      const NpyLiteral** const place = key == "descr"           ? &descr
                                       : key == "fortran_order" ? &fortran_order
                                       : key == "shape"         ? &shape
                                                                : nullptr;
      if (place == nullptr) {
        return header_error("the header has a key \"" + printable(key) +
                            "\", but only descr, fortran_order and shape");
      }
      if (*place != nullptr) return header_error("the header has the key " + key + " twice");
      *place = &value;
    }
    for (const auto& [place, key] :
         {std::pair{descr, "descr"}, {fortran_order, "fortran_order"}, {shape, "shape"}}) {
      if (place == nullptr) return header_error(std::string("the header has no key ") + key);
    }
    return take_descr(*descr) && take_order(*fortran_order) && take_shape(*shape);
  }

  bool take_descr(const NpyLiteral& literal) {
    place_at(literal);
    const NpyDescr descr = read_npy_descr(literal);
    if (!descr.error.empty()) return error("npy_descr", descr.error);
    header_.descr =
        literal.kind == NpyLiteral::Kind::text ? literal.text : std::string(literal.source);
    if (descr.has_objects) {
      return error("npy_object",
                   "the elements are Python objects (descr " + printable(header_.descr) +
                       "), stored as a pickle: reading one can run any program, so that it is not "
                       "read here",
                   "if you trust its source, load it in Python with allow_pickle=True and save "
                   "x.astype(np.float32)");
    }
    header_.dtype = descr.dtype;
    header_.element_bytes = descr.element_bytes;
    header_.big_endian = descr.big_endian;
    if (descr.assumed_little) {
      warn("npy_byte_order", "descr '" + printable(header_.descr) +
                                 "' states no byte order; it is read as little-endian");
    }
    return true;
  }

  bool take_order(const NpyLiteral& literal) {
    place_at(literal);
    header_.fortran_order = literal.truth;
    return literal.kind == NpyLiteral::Kind::truth ||
           header_error("fortran_order is " + printable(literal.source) +
                        ", but it must be True or False");
  }

  bool take_shape(const NpyLiteral& literal) {
    place_at(literal);
    const std::string written = "shape is " + printable(literal.source) + ", but ";
    if (literal.kind != NpyLiteral::Kind::tuple) {
      const bool is_number = literal.kind == NpyLiteral::Kind::number;
      return error("npy_shape", written + "it must be a tuple" +
                                    (is_number ? " (of one size: (5,) with a comma)" : ""));
    }
    if (literal.items.size() > max_rank) {
      return error("npy_shape", written + "it has " + std::to_string(literal.items.size()) +
                                    " axes, and NumPy has at most " + std::to_string(max_rank));
    }
    std::vector<Index> sizes;
    for (const NpyLiteral& item : literal.items) {
      Index size = 0;
      if (item.kind != NpyLiteral::Kind::number || item.text.starts_with('-')) {
        return error("npy_shape", written + printable(item.source) +
                                      " is no size: sizes are whole numbers of at least 0");
      }
      for (const char digit : item.text) {
        if (__builtin_mul_overflow(size, 10, &size) ||
            __builtin_add_overflow(size, digit - '0', &size)) {
          return error("npy_shape", written + item.text + " is more than 63 bits hold");
        }
      }
      sizes.push_back(size);
    }
    if (!fits(sizes)) return error("npy_shape", written + "its product is more than 63 bits hold");
    header_.shape = Shape(std::move(sizes));
    return true;
  }

  // An axis of size 0 makes the array empty, whatever the others are.
  static bool fits(const std::vector<Index>& sizes) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return true;
    Index count = 1;
    return std::none_of(sizes.begin(), sizes.end(),
                        [&](Index size) { return __builtin_mul_overflow(count, size, &count); });
  }

  void check_padding(std::string_view text) {
    range(text_begin_, header_.data_begin);
    if (!text.ends_with('\n')) warn("npy_padding", "the header does not end with a new line");
    if (header_.data_begin % old_alignment != 0) {
      warn("npy_padding", "the data begins at byte " + std::to_string(header_.data_begin) +
                              ", but it should begin at a multiple of 64 (16 in old files)");
    }
  }

  bool check_size() {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<std::uint64_t>(header_.shape.count()),
                               header_.element_bytes, &bytes)) {
      range(text_begin_, header_.data_begin);
      return error("npy_shape", "shape is " + sizes_to_string(header_.shape) + " of " +
                                    std::to_string(header_.element_bytes) +
                                    " bytes each, but that is more than 64 bits hold");
    }
    const std::uint64_t held = total_bytes_ - header_.data_begin;
    const std::string facts = sizes_to_string(header_.shape) + " of descr " +
                              printable(header_.descr) + " takes " + std::to_string(bytes) +
                              " bytes, but " + std::to_string(held) + " follow the header: ";
    if (held < bytes) {
      range(header_.data_begin, total_bytes_);
      return error("npy_size", facts + counted_bytes(bytes - held) + " missing", truncated_hint);
    }
    if (held > bytes) {
      range(header_.data_begin + bytes, total_bytes_);
      warn("npy_size", facts + counted_bytes(held - bytes) + " too many, left unread");
    }
    return true;
  }

  void range(std::uint64_t begin, std::uint64_t end) {
    begin_ = begin;
    end_ = end;
  }
  void place_at(const NpyLiteral& literal) {
    range(text_begin_ + literal.at, text_begin_ + literal.at + literal.source.size());
  }

  bool error(const std::string& rule, const std::string& message, const std::string& hint = {}) {
    findings_.add({Severity::error, name_, {}, begin_, end_, rule, message, hint});
    return false;
  }
  bool header_error(const std::string& message) { return error("npy_header", message); }
  void warn(const std::string& rule, const std::string& message, const std::string& hint = {}) {
    findings_.add({Severity::warning, name_, {}, begin_, end_, rule, message, hint});
  }

  std::span<const std::byte> bytes_;
  std::uint64_t total_bytes_;
  const std::string& name_;
  Findings& findings_;
  NpyHeader header_;
  std::uint64_t text_begin_ = 0;
  std::optional<std::uint64_t> begin_;  // of what is looked at
  std::optional<std::uint64_t> end_;
};

}  // namespace

std::optional<NpyHeader> read_npy_header(std::span<const std::byte> bytes,
                                         std::uint64_t total_bytes, const std::string& name,
                                         Findings& findings) {
  return HeaderReader(bytes, total_bytes, name, findings).read();
}

}  // namespace eckart
