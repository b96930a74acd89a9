#include "eckart/io/npy_descr.h"

#include "eckart/io/findings.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace eckart {
namespace {

constexpr std::uint64_t max_element_bytes = std::uint64_t{1} << 31;  // NumPy's own: a C int

// The parts of a string such as `<M8[ns]`.
struct DescrText {
  char order = 0;  // 0: none is stated
  char kind = 0;
  std::optional<std::uint64_t> size;
  std::string_view rest;
};

DescrText split(std::string_view text) {
  DescrText parts;
  if (!text.empty() && std::string_view("<>=|").find(text[0]) != std::string_view::npos) {
    parts.order = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) {
    parts.kind = text[0];
    text.remove_prefix(1);
  }
  std::size_t digits = 0;
  std::uint64_t size = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    size =
        std::min(size * 10 + static_cast<std::uint64_t>(text[digits] - '0'), max_element_bytes + 1);
    ++digits;
  }
  if (digits > 0) parts.size = size;
  parts.rest = text.substr(digits);
  return parts;
}

struct NumberDescr {
  char kind;
  std::uint64_t size;
  Dtype dtype;
};

constexpr std::array<NumberDescr, 13> numbers = {{
    {'b', 1, Dtype::boolean},
    {'i', 1, Dtype::i8},
    {'i', 2, Dtype::i16},
    {'i', 4, Dtype::i32},
    {'i', 8, Dtype::i64},
    {'u', 1, Dtype::u8},
    {'u', 2, Dtype::u16},
    {'u', 4, Dtype::u32},
    {'u', 8, Dtype::u64},
    {'f', 2, Dtype::f16},
    {'f', 4, Dtype::f32},
    {'f', 8, Dtype::f64},
    {'c', 8, Dtype::c64},
}};

// Sizes of the kinds that exist but have no dtype here: `f1` is ml_dtypes' float8_e5m2, f12 and f16
// are long double.
bool is_other_size(char kind, std::uint64_t size) {
  switch (kind) {
    case 'f':
      return size == 1 || size == 12 || size == 16;
    case 'c':
      return size == 16 || size == 24 || size == 32;
    case 'M':
    case 'm':
      return size == 8;
    case 'S':
    case 'a':
    case 'V':
    case 'U':
      return true;
    default:
      return false;
  }
}

NpyDescr no_descr(std::string_view text) {
  NpyDescr result;
  result.error = "descr '" + printable(text) +
                 "' is no dtype, but it must be a byte order, a kind and a size in bytes, as <f4";
  return result;
}

NpyDescr read_text(std::string_view text) {
  const DescrText parts = split(text);
  NpyDescr result;
  result.big_endian = parts.order == '>';
  if (parts.kind == 'O' && parts.rest.empty()) {
    result.has_objects = true;
    return result;
  }
  const bool is_time = parts.kind == 'M' || parts.kind == 'm';
  const bool has_unit = parts.rest.size() > 2 && parts.rest[0] == '[' && parts.rest.back() == ']';
  if (!parts.size || *parts.size > max_element_bytes ||
      !(parts.rest.empty() || (is_time && has_unit))) {
    return no_descr(text);
  }
  result.element_bytes = *parts.size * (parts.kind == 'U' ? 4 : 1);
  const auto number = std::find_if(numbers.begin(), numbers.end(), [&](const NumberDescr& entry) {
    return entry.kind == parts.kind && entry.size == *parts.size;
  });
  if (number != numbers.end()) {
    result.dtype = number->dtype;
  } else if (!is_other_size(parts.kind, *parts.size)) {
    return no_descr(text);
  }
  const bool is_bytes = parts.kind == 'S' || parts.kind == 'a' || parts.kind == 'V';
  result.assumed_little =
      result.element_bytes > 1 && !is_bytes && parts.order != '<' && parts.order != '>';
  return result;
}

// Number of elements of a field: the product of a tuple, or one number.
std::optional<std::uint64_t> field_count(const NpyLiteral& shape) {
  if (shape.kind == NpyLiteral::Kind::number) {
    if (shape.text.empty() || shape.text[0] == '-' || shape.text.size() > 10) return std::nullopt;
    return std::stoull(shape.text);
  }
  if (shape.kind != NpyLiteral::Kind::tuple) return std::nullopt;
  std::uint64_t count = 1;
  for (const NpyLiteral& size : shape.items) {
    const auto n = size.kind == NpyLiteral::Kind::number ? field_count(size) : std::nullopt;
    if (!n || __builtin_mul_overflow(count, *n, &count)) return std::nullopt;
  }
  return count;
}

NpyDescr no_field(const NpyLiteral& field) {
  NpyDescr result;
  result.error = "the field " + printable(field.source) +
                 " of descr is not a name, a dtype and at most a shape";
  return result;
}

// A record: [(name, dtype), (name, dtype, shape), ((title, name), dtype), …].
NpyDescr read_fields(const NpyLiteral& list) {
  NpyDescr record;
  for (const NpyLiteral& field : list.items) {
    const bool is_field = field.kind == NpyLiteral::Kind::tuple &&
                          (field.items.size() == 2 || field.items.size() == 3) &&
                          (field.items[0].kind == NpyLiteral::Kind::text ||
                           field.items[0].kind == NpyLiteral::Kind::tuple);
    if (!is_field) return no_field(field);
    NpyDescr part = read_npy_descr(field.items[1]);
    if (!part.error.empty()) return part;
    std::optional<std::uint64_t> count = 1;
    if (field.items.size() == 3) count = field_count(field.items[2]);
    std::uint64_t bytes = 0;
    if (!count || __builtin_mul_overflow(part.element_bytes, *count, &bytes) ||
        (record.element_bytes += std::min(bytes, max_element_bytes + 1)) > max_element_bytes) {
      return no_field(field);
    }
    record.has_objects |= part.has_objects;
  }
  return record;
}

std::string joined_reinterpretations(std::uint64_t bytes) {
  switch (bytes) {
    case 1:
      return "ml_dtypes saves its 1-byte floats so; read it as what it was with "
             "NpyOptions::reinterpret: F8_E4M3, F8_E5M2, F8_E8M0, F8_E4M3FNUZ or F8_E5M2FNUZ";
    case 2:
      return "ml_dtypes saves bfloat16 so; read it with NpyOptions::reinterpret = BF16";
    default:
      return "if you know what they are, read them with NpyOptions::reinterpret";
  }
}

}  // namespace

NpyDescr read_npy_descr(const NpyLiteral& descr) {
  if (descr.kind == NpyLiteral::Kind::text) return read_text(descr.text);
  if (descr.kind == NpyLiteral::Kind::list) return read_fields(descr);
  return no_descr(descr.source);
}

std::optional<NpyObstacle> npy_obstacle(const std::string& descr, std::optional<Dtype> dtype) {
  if (dtype && is_widenable(*dtype)) return std::nullopt;
  const std::string written = " (descr " + printable(descr) + ")";
  if (descr.starts_with('[')) {
    return NpyObstacle{"the elements are records of several fields" + written + ", not numbers",
                       "save one field by itself: np.save(\"field.npy\", x[\"name\"])"};
  }
  const DescrText parts = split(descr);
  const std::uint64_t size = parts.size.value_or(0);
  switch (parts.kind) {
    case 'S':
    case 'a':
    case 'U':
      return NpyObstacle{"the elements are text" + written + ", not numbers",
                         "if the text is numbers, save x.astype(np.float32)"};
    case 'M':
    case 'm':
      return NpyObstacle{"the elements are dates or times" + written + ", not numbers",
                         "save x.astype(np.int64)"};
    case 'V':
      return NpyObstacle{"the elements are raw bytes" + written + ", whose meaning is not stated",
                         joined_reinterpretations(size)};
    case 'c':
      return NpyObstacle{"the elements are complex numbers" + written + ", not real ones",
                         "save x.real and x.imag"};
    default:
      break;
  }
  if (parts.kind == 'f' && size == 1) {
    return NpyObstacle{"the elements are 1-byte floats" + written +
                           ", a name that NumPy itself "
                           "can't read",
                       "ml_dtypes saves float8_e5m2 so; read it with NpyOptions::reinterpret = "
                       "F8_E5M2"};
  }
  return NpyObstacle{"the elements are long doubles" + written +
                         ", which differ from machine to "
                         "machine",
                     "save x.astype(np.float64)"};
}

}  // namespace eckart
