// config.json of a Hugging Face model, read with every value checked.
#pragma once

#include "eckart/core/shape.h"

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {
namespace detail {
struct ConfigValues;
}

/// A JSON object of settings. Every reader takes the names that a setting goes by, the first one
/// present wins, and `null` counts as absent. A value of the wrong kind (a text for a size, a
/// negative or fractional size) throws FormatError naming file, key and value.
class Config {
 public:
  /// Where it was read from, for messages.
  const std::string& source() const { return source_; }
  std::string model_type() const;
  /// `architectures`, usually one class name: `LlamaForCausalLM`.
  std::vector<std::string> architectures() const { return texts({"architectures"}); }

  using Names = std::initializer_list<std::string_view>;
  /// True when the key stands there, also as `null`.
  bool has(std::string_view name) const;
  /// The keys, sorted.
  std::vector<std::string> keys() const;
  /// A size: an integer of at least 0 and at most 2^40.
  std::optional<Index> size(Names names) const;
  /// As `size`, but an absent one throws FormatError that says which key is missing.
  Index required_size(Names names) const;
  std::optional<double> number(Names names) const;
  std::optional<bool> boolean(Names names) const;
  std::optional<std::string> text(Names names) const;
  std::vector<std::string> texts(Names names) const;
  std::vector<Index> sizes(Names names) const;
  /// A size, or a list of them: `eos_token_id` is either.
  std::vector<Index> one_or_more(Names names) const;
  std::vector<double> numbers(Names names) const;
  /// A nested object, or nothing.
  std::optional<Config> section(std::string_view name) const;
  /// A list of objects; empty when absent.
  std::vector<Config> sections(std::string_view name) const;

 private:
  friend Config parse_config(std::string_view json, const std::string& source);

  Config(std::string source, std::shared_ptr<const detail::ConfigValues> values);

  std::string source_;
  std::shared_ptr<const detail::ConfigValues> values_;
};

/// Parses an object. `source` names it in messages. Throws FormatError, with the byte, when it is
/// no JSON object, a key stands twice, or it is larger than 16 MiB, 64 levels or a million values.
Config parse_config(std::string_view json, const std::string& source);
/// The same of a list of objects, which become the sections `name` of the result: modules.json.
Config parse_config_list(std::string_view json, const std::string& name, const std::string& source);
/// Reads a config.json, or the one in a folder. Throws FileError when there is none.
Config load_config(const std::filesystem::path& path);

}  // namespace eckart
