// Options with values: each names itself and what it was given when it can't take that.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "console.h"
#include "usage.h"
#include <CLI/CLI.hpp>

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

// Both families of prefixes: `GB` is 10^9, `GiB` and `Gi` are 2^30.
constexpr std::string_view prefixes = "KMGTPE";

std::optional<double> unit_factor(std::string unit) {
  if (unit.empty() || unit == "B") return 1.0;
  const std::size_t power = prefixes.find(unit.front());
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(unit).substr(1);
  const auto n = static_cast<double>(power + 1);
  if (rest.empty() || rest == "B") return std::pow(1000.0, n);
  if (rest == "I" || rest == "IB") return std::pow(1024.0, n);
  return std::nullopt;
}

std::string given(const OptionDefinition& option, const std::string& text) {
  return option.name + ": '" + text + "' ";
}

Index parse_number(const OptionDefinition& option, const std::string& text) {
  Index number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool is_digits = read.ptr == end && !text.empty();
  if (!is_digits) {
    throw_usage_error(given(option, text) + "is no whole number",
                      "it takes decimal digits alone: 32000 or 32768, not 32k");
  }
  // What is beyond 63 bits is out of every range.
  if (read.ec != std::errc() || number < option.least || number > option.most) {
    throw_usage_error(option.name + " is " + text + ", but must be from " + grouped(option.least) +
                      " to " + grouped(option.most));
  }
  return number;
}

struct Interval {
  bool (*holds)(double);
  std::string_view words;
};

Interval interval_of(Decimals range) {
  switch (range) {
    case Decimals::above_0_below_1:
      return {[](double x) { return x > 0 && x < 1; }, "above 0 and below 1"};
    case Decimals::above_0_to_1:
      return {[](double x) { return x > 0 && x <= 1; }, "above 0 and at most 1"};
    case Decimals::from_0:
      break;
  }
  return {[](double x) { return x >= 0; }, "at least 0"};
}

std::vector<std::string> split_choices(const std::string& value) {
  std::vector<std::string> choices;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t end = std::min(value.find('|', begin), value.size());
    choices.push_back(value.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

void check_choice(const OptionDefinition& option, const std::string& text) {
  const std::vector<std::string> choices = split_choices(option.value);
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return;
  std::string listed;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    listed += (i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ") + choices[i];
  }
  throw_usage_error(option.name + " is '" + text + "', but must be " + listed);
}

Dtype parse_dtype_name(const OptionDefinition& option, const std::string& text) {
  const std::string name = upper(text);
  if (const auto dtype = parse_dtype(name)) return *dtype;
  for (const auto& [other, dtype] : other_names) {
    if (name == other) return dtype;
  }
  throw_usage_error(given(option, text) + "is no dtype",
                    "it takes F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I8, F4 and the other names "
                    "of safetensors");
}

Index parse_byte_size(const OptionDefinition& option, const std::string& text) {
  // Digits and a point alone: no sign, hexadecimal, infinity or locale's comma.
  const std::size_t used = std::min(text.find_first_not_of("0123456789."), text.size());
  double amount = 0;
  const char* const number_end = text.data() + used;
  const bool is_number =
      used > 0 && std::from_chars(text.data(), number_end, amount).ptr == number_end;
  std::string unit = upper(text.substr(used));
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  const std::optional<double> factor = unit_factor(unit);
  if (!is_number || !factor) {
    throw_usage_error(given(option, text) + "is no number of bytes",
                      "write it as 24GB (10^9 bytes), 16GiB (2^30 bytes), 512MB or 8000000000");
  }
  const double bytes = amount * *factor;
  constexpr double largest = 9.2e18;
  if (!(bytes >= 1) || !(bytes <= largest)) {
    throw_usage_error(given(option, text) + "must be from 1 byte to 9.2 EB");
  }
  constexpr double smallest_plain = 1024.0 * 1024;
  if (unit.empty() && bytes < smallest_plain) {
    throw_usage_error(given(option, text) + "are so few bytes that a unit is missing",
                      text + "GB or " + text + "GiB?");
  }
  return static_cast<Index>(bytes);
}

}  // namespace

CLI::Option* add_text(CLI::App& command, const OptionDefinition& definition,
                      const std::function<void(const std::string&)>& take) {
  return command
      .add_option_function<std::string>(
          definition.name,
          [definition, take](const std::string& text) {
            if (text.empty()) {
              throw_usage_error(definition.name + " is empty, but takes a value",
                                "leave the option out for its default");
            }
            take(text);
          },
          definition.effect)
      ->type_name(definition.value);
}

CLI::Option* add_number(CLI::App& command, const OptionDefinition& definition, Index& number) {
  return add_text(command, definition, [definition, &number](const std::string& text) {
    number = parse_number(definition, text);
  });
}

CLI::Option* add_number(CLI::App& command, const OptionDefinition& definition,
                        std::optional<Index>& number) {
  return add_text(command, definition, [definition, &number](const std::string& text) {
    number = parse_number(definition, text);
  });
}

CLI::Option* add_seed(CLI::App& command, const std::string& effect, std::uint64_t& seed) {
  const OptionDefinition definition{
      .name = "--seed", .effect = effect, .least = 0, .most = std::numeric_limits<Index>::max()};
  return add_text(command, definition, [definition, &seed](const std::string& text) {
    seed = static_cast<std::uint64_t>(parse_number(definition, text));
  });
}

double parse_decimal(const std::string& option, const std::string& text, Decimals range) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_number = error == std::errc{} && stop == end && std::isfinite(number);
  const Interval interval = interval_of(range);
  if (!is_number || !interval.holds(number)) {
    throw_usage_error(option + " is '" + text + "', but must be a number " +
                      std::string(interval.words));
  }
  return number;
}

CLI::Option* add_decimal(CLI::App& command, const OptionDefinition& definition, Decimals range,
                         const std::function<void(double)>& take) {
  return add_text(command, definition,
                  [name = definition.name, range, take](const std::string& text) {
                    take(parse_decimal(name, text, range));
                  });
}

CLI::Option* add_choice(CLI::App& command, const OptionDefinition& definition,
                        const std::function<void(const std::string&)>& take) {
  return add_text(command, definition, [definition, take](const std::string& text) {
    check_choice(definition, text);
    take(text);
  });
}

CLI::Option* add_dtype(CLI::App& command, const OptionDefinition& definition,
                       std::optional<Dtype>& dtype) {
  return add_text(command, definition, [definition, &dtype](const std::string& text) {
    dtype = parse_dtype_name(definition, text);
  });
}

CLI::Option* add_byte_size(CLI::App& command, const OptionDefinition& definition,
                           std::optional<Index>& bytes) {
  return add_text(command, definition, [definition, &bytes](const std::string& text) {
    bytes = parse_byte_size(definition, text);
  });
}

CLI::Option* add_size_or_number(CLI::App& command, const OptionDefinition& definition,
                                std::optional<Index>& bytes, std::optional<Index>& number) {
  return add_text(command, definition, [definition, &bytes, &number](const std::string& text) {
    const bool has_unit = text.find_first_not_of("0123456789") != std::string::npos;
    (has_unit ? bytes : number) =
        has_unit ? parse_byte_size(definition, text) : parse_number(definition, text);
  });
}

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string value = option.get_type_name();
  if (value == "DTYPE") return {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I8", "F4"};
  return value.find('|') == std::string::npos ? std::vector<std::string>{} : split_choices(value);
}

}  // namespace eckart::cli
