// What a validator has to say about a file: every broken rule, with its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eckart {

enum class Severity { error, warning };

/// One broken rule.
struct Finding {
  Severity severity = Severity::error;
  std::string file = {};
  std::string tensor = {};                  // empty: the whole file
  std::optional<std::uint64_t> begin = {};  // byte range in the file, end exclusive
  std::optional<std::uint64_t> end = {};
  std::string rule = {};     // a short stable name, snake_case: `offsets_overlap`
  std::string message = {};  // a sentence with the values
  std::string hint = {};     // what to do, where that is known
};

/// Findings in the order they were made. A hostile file can break a rule a million times: of one
/// rule in one file `kept_per_rule` are kept and the rest are counted.
class Findings {
 public:
  static constexpr std::size_t kept_per_rule = 100;

  /// Constant time, however many findings there are.
  void add(Finding finding);
  /// Adds all of `other`, which is about other files.
  void append(const Findings& other);

  const std::vector<Finding>& all() const { return findings_; }
  bool empty() const { return findings_.empty(); }
  /// Numbers of findings made, also of those not kept.
  std::size_t errors() const { return errors_; }
  std::size_t warnings() const { return warnings_; }
  /// Findings made but not kept.
  std::size_t omitted() const { return errors_ + warnings_ - findings_.size(); }
  const Finding* first_error() const;

 private:
  std::vector<Finding> findings_;
  std::unordered_map<std::string, std::size_t> made_;  // by rule and file
  std::size_t errors_ = 0;
  std::size_t warnings_ = 0;
};

/// Text from a file, fit for a terminal: control characters, invisible marks that change the
/// direction of writing, and bytes that are no UTF-8 become `\xNN`; what is longer than
/// `max_bytes` is cut at a character and ends with `…`.
std::string printable(std::string_view text, std::size_t max_bytes = 200);
/// The same without the cut: the reader has to find the file.
std::string printable_path(std::string_view path);

/// Throws the first error of `findings` as a FormatError whose message is `file: tensor x:
/// message`; does nothing when there is none.
void throw_first_error(const Findings& findings);

}  // namespace eckart
