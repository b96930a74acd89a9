// The sections of a tokenizer.json, read with every value checked. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace eckart::detail {

/// A value of the file and where it stands in it: `pre_tokenizer.pretokenizers[1]`. A value of the
/// wrong kind throws FormatError that names file, place and value.
class Fields {
 public:
  Fields(const nlohmann::json& value, std::string where, const std::string& source)
      : value_(&value), where_(std::move(where)), source_(&source) {}

  const std::string& where() const { return where_; }
  const std::string& source() const { return *source_; }
  bool is_object() const { return value_->is_object(); }
  bool is_text() const { return value_->is_string(); }
  /// True when the key stands there with a value other than null.
  bool has(std::string_view name) const;

  std::string text(std::string_view name) const;
  std::string text_or(std::string_view name, const std::string& otherwise) const;
  bool boolean_or(std::string_view name, bool otherwise) const;
  std::optional<bool> boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::int64_t integer_or(std::string_view name, std::int64_t otherwise) const;
  double number_or(std::string_view name, double otherwise) const;
  /// The section that stands there; throws when there is none.
  Fields section(std::string_view name) const;
  std::vector<Fields> list(std::string_view name) const;
  /// Keys of this object with what they hold.
  std::vector<std::pair<std::string, Fields>> members() const;
  /// This value itself.
  std::string as_text() const;
  std::int64_t as_integer() const;
  std::vector<Fields> as_list() const;

  /// `type`, or what an untyped section is.
  std::string type() const { return text("type"); }

  /// Throws FormatError: `file: where: rule`.
  [[noreturn]] void fail(const std::string& rule) const;
  /// Throws ArgumentError: the type is none that is read, and these are.
  [[noreturn]] void refuse(const std::string& what, const std::string& supported) const;

 private:
  const nlohmann::json* find(std::string_view name) const;
  Fields at(std::string_view name) const;
  [[noreturn]] void fail_kind(const std::string& wanted) const;

  const nlohmann::json* value_;
  std::string where_;
  const std::string* source_;
};

}  // namespace eckart::detail
