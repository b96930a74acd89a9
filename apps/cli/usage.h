// Wrong usage: what is said of it, and options that refuse it in one voice.
#pragma once

#include "eckart/core/errors.h"
#include "eckart/core/shape.h"
#include "eckart/io/dtype.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

namespace eckart::cli {

/// A command line that can't be meant: exit status 2.
class UsageError : public ArgumentError {
 public:
  using ArgumentError::ArgumentError;
};
[[noreturn]] void throw_usage_error(const std::string& message, const std::string& hint = {});

/// The command that was given, or as much of its name as was; else the program.
const CLI::App& named_app(const CLI::App& app);
/// The commands of a program or of a group.
std::vector<const CLI::App*> commands_of(const CLI::App& app);
/// `count`, `pca fit`; of the program nothing.
std::string command_name(const CLI::App& app);

/// What CLI11 found wrong with a command line, in our words: `no option --lora_rank; did you mean
/// --lora-rank?`, `PATH is missing`.
UsageError usage_error(const CLI::App& app, const CLI::ParseError& error);
/// Of the arguments that name the command, up to the first option: throws UsageError when no
/// command has that name.
void require_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// Throws UsageError when an argument or an option's value is empty.
void refuse_empty_values(const CLI::App& app);

/// An option as it is defined; `value` is how help calls its value.
struct OptionDefinition {
  std::string name;  // `--context`
  std::string effect;
  std::string value = "N";
  Index least = 1;
  Index most = Index{1} << 40;
};

/// An option that takes a whole number in decimal digits, from `least` to `most`.
CLI::Option* add_number(CLI::App& command, const OptionDefinition& definition, Index& number);
/// The same, of a number that has no default.
CLI::Option* add_number(CLI::App& command, const OptionDefinition& definition,
                        std::optional<Index>& number);
/// An option that takes the seed of a random stream: a whole number from 0.
CLI::Option* add_seed(CLI::App& command, const std::string& effect, std::uint64_t& seed);

/// The numbers that an option takes, a point and an exponent allowed.
enum class Decimals { from_0, above_0_below_1, above_0_to_1 };
/// Throws UsageError, naming the option, unless `text` is such a number.
double parse_decimal(const std::string& option, const std::string& text, Decimals range);
/// An option that takes a number: `0.9`, `1e-3`.
CLI::Option* add_decimal(CLI::App& command, const OptionDefinition& definition, Decimals range,
                         const std::function<void(double)>& take);

/// An option or a positional that takes one of a few words, which `definition.value` lists:
/// `largest|smallest`.
CLI::Option* add_choice(CLI::App& command, const OptionDefinition& definition,
                        const std::function<void(const std::string&)>& take);
/// The same, of words that stand for values.
template <class T>
CLI::Option* add_choice(CLI::App& command, const OptionDefinition& definition,
                        const std::map<std::string, T>& values, T& value) {
  return add_choice(command, definition,
                    [values, &value](const std::string& word) { value = values.at(word); });
}

/// An option that takes a dtype by any of its usual names: `BF16`, `bf16`, `bfloat16`, `F8_E4M3`, …
CLI::Option* add_dtype(CLI::App& command, const OptionDefinition& definition,
                       std::optional<Dtype>& dtype);
/// An option that takes a number of bytes: `24GB`, `16GiB`, `8000000000`.
CLI::Option* add_byte_size(CLI::App& command, const OptionDefinition& definition,
                           std::optional<Index>& bytes);
/// The same, or a plain number that counts something else: `50MB` or `10000000`.
CLI::Option* add_size_or_number(CLI::App& command, const OptionDefinition& definition,
                                std::optional<Index>& bytes, std::optional<Index>& number);
/// An option that takes a text, which isn't empty.
CLI::Option* add_text(CLI::App& command, const OptionDefinition& definition,
                      const std::function<void(const std::string&)>& take);

/// The values of an option of which there are few: dtypes, and those of `bash|zsh|fish`.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace eckart::cli
