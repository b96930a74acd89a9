#include "eckart/io/dtype.h"

#include <array>
#include <cstddef>

namespace eckart {
namespace {

struct DtypeFacts {
  std::string_view name;
  int bits;
  bool is_floating;
};

// In the order of the enumeration.
constexpr std::array<DtypeFacts, n_dtypes> facts = {{
    {"BOOL", 8, false},   {"F4", 4, true},          {"F6_E2M3", 6, true},     {"F6_E3M2", 6, true},
    {"U8", 8, false},     {"I8", 8, false},         {"F8_E5M2", 8, true},     {"F8_E4M3", 8, true},
    {"F8_E8M0", 8, true}, {"F8_E4M3FNUZ", 8, true}, {"F8_E5M2FNUZ", 8, true}, {"I16", 16, false},
    {"U16", 16, false},   {"F16", 16, true},        {"BF16", 16, true},       {"I32", 32, false},
    {"U32", 32, false},   {"F32", 32, true},        {"C64", 64, false},       {"F64", 64, true},
    {"I64", 64, false},   {"U64", 64, false},
}};

const DtypeFacts& facts_of(Dtype dtype) { return facts[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view to_string(Dtype dtype) { return facts_of(dtype).name; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

int bits(Dtype dtype) { return facts_of(dtype).bits; }

bool is_floating(Dtype dtype) { return facts_of(dtype).is_floating; }

std::optional<std::uint64_t> stored_bytes(Dtype dtype, Index count) {
  std::uint64_t all_bits = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(count),
                             static_cast<std::uint64_t>(bits(dtype)), &all_bits) ||
      all_bits % 8 != 0) {
    return std::nullopt;
  }
  return all_bits / 8;
}

}  // namespace eckart
