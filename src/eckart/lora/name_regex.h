// Regular expressions on names of modules, as PEFT's configs have them. Internal.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace eckart::detail {

/// A compiled expression (PCRE2, whose syntax holds that of Python's `re` but for rarities).
class NameRegex {
 public:
  /// Throws ArgumentError, with the place in it, when it is no regular expression.
  explicit NameRegex(const std::string& expression);

  /// Whether the whole name fits. Throws ArgumentError when deciding takes more than ten million
  /// steps: expressions such as `(a+)+b` would take for ever.
  bool matches(std::string_view name) const;
  /// Where the first group begins and ends when the whole name fits.
  std::optional<std::string_view> first_group(std::string_view name) const;

 private:
  struct Code;
  struct Free {
    void operator()(Code* code) const;
  };

  std::string expression_;
  std::unique_ptr<Code, Free> code_;
};

/// The keys of a rank_pattern or alpha_pattern: each stands for `(.*\.)?(KEY)$`, and the first that
/// fits a name counts. Keys that are a whole name, as Eckart writes them (`^` and letters, escaped),
/// are looked up, and those of letters, digits, `_`, `-` and `.` alone compared, so that
/// thousands of keys and names take a moment; others go through PCRE2.
class NamePatterns {
 public:
  NamePatterns() = default;
  /// Throws ArgumentError as NameRegex.
  explicit NamePatterns(const std::vector<std::string>& keys);

  /// The position of the first key that fits.
  std::optional<std::size_t> find(std::string_view name) const;

 private:
  // Whole names, and keys of letters and points by their length, with their positions.
  std::unordered_map<std::string, std::size_t> whole_;
  std::map<std::size_t, std::vector<std::pair<std::size_t, std::string>>> plain_;
  std::vector<std::pair<std::size_t, NameRegex>> expressions_;
};

}  // namespace eckart::detail
