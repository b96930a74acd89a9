#include "eckart/core/errors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "commands.h"

namespace eckart::cli {
namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// Names of PyTorch and of common speech for the dtypes of safetensors.
constexpr std::array<std::pair<std::string_view, Dtype>, 12> other_names = {{
    {"FLOAT64", Dtype::f64},
    {"FLOAT32", Dtype::f32},
    {"FP32", Dtype::f32},
    {"FLOAT16", Dtype::f16},
    {"FP16", Dtype::f16},
    {"HALF", Dtype::f16},
    {"BFLOAT16", Dtype::bf16},
    {"FP8", Dtype::f8_e4m3},
    {"F8", Dtype::f8_e4m3},
    {"INT8", Dtype::i8},
    {"FP4", Dtype::f4},
    {"FLOAT4", Dtype::f4},
}};

}  // namespace

std::uint64_t parse_byte_size(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, double>, 14> units = {{
      {"", 1},
      {"B", 1},
      {"K", 1e3},
      {"KB", 1e3},
      {"M", 1e6},
      {"MB", 1e6},
      {"G", 1e9},
      {"GB", 1e9},
      {"T", 1e12},
      {"TB", 1e12},
      {"KIB", 1024.0},
      {"MIB", 1024.0 * 1024},
      {"GIB", 1024.0 * 1024 * 1024},
      {"TIB", 1024.0 * 1024 * 1024 * 1024},
  }};
  // Digits and a point alone: no sign, hexadecimal, infinity or locale's comma.
  const std::size_t used = std::min(text.find_first_not_of("0123456789."), text.size());
  double amount = 0;
  const char* const number_end = text.data() + used;
  const bool is_number = std::from_chars(text.data(), number_end, amount).ptr == number_end;
  std::string unit = upper(text.substr(used));
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  for (const auto& [name, factor] : units) {
    const double bytes = amount * factor;
    if (is_number && used > 0 && unit == name && std::isfinite(bytes) && bytes >= 1 &&
        bytes < 1e18) {
      return static_cast<std::uint64_t>(bytes);
    }
  }
  throw_argument_error("a size: '" + text + "' is no number of bytes",
                       "write it as 24GB (10^9 bytes), 16GiB (2^30 bytes), 512MB or 8000000000");
}

Dtype parse_dtype_option(const std::string& option, const std::string& text) {
  const std::string name = upper(text);
  if (const auto dtype = parse_dtype(name)) return *dtype;
  for (const auto& [other, dtype] : other_names) {
    if (name == other) return dtype;
  }
  throw_argument_error(option + ": '" + text + "' is no dtype",
                       "it takes F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I8, F4 and the other names "
                       "of safetensors");
}

}  // namespace eckart::cli
