#include "eckart/model/tokenizer/fields.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <utility>

namespace eckart::detail {
namespace {

std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string()) return '"' + printable(value.get_ref<const std::string&>(), 60) + '"';
  return value.dump();
}

}  // namespace

void Fields::fail(const std::string& rule) const {
  throw_format_error(*source_, std::nullopt, *source_ + ": " + where_ + ' ' + rule);
}

void Fields::fail_kind(const std::string& wanted) const {
  fail("is " + shown(*value_) + ", but it must be " + wanted);
}

void Fields::refuse(const std::string& what, const std::string& supported) const {
  throw_argument_error(*source_ + ": " + where_ + " is " + what + ", but Eckart does not read it",
                       "read are " + supported);
}

const nlohmann::json* Fields::find(std::string_view name) const {
  if (!value_->is_object()) fail_kind("an object");
  const auto found = value_->find(name);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool Fields::has(std::string_view name) const { return find(name) != nullptr; }

Fields Fields::at(std::string_view name) const {
  const nlohmann::json* const value = find(name);
  if (value == nullptr) fail("has no " + std::string(name) + ", but it needs one");
  return {*value, where_.empty() ? std::string(name) : where_ + '.' + std::string(name), *source_};
}

std::string Fields::as_text() const {
  if (!value_->is_string()) fail_kind("a text");
  return value_->get<std::string>();
}

std::int64_t Fields::as_integer() const {
  constexpr std::int64_t largest = std::int64_t{1} << 32U;
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() ||
                     value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(largest));
  if (!fits || value_->get<std::int64_t>() < 0) fail_kind("a whole number from 0 to 2^32");
  return value_->get<std::int64_t>();
}

std::vector<Fields> Fields::as_list() const {
  if (!value_->is_array()) fail_kind("a list");
  std::vector<Fields> all;
  all.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    all.emplace_back((*value_)[i], where_ + '[' + std::to_string(i) + ']', *source_);
  }
  return all;
}

std::string Fields::text(std::string_view name) const { return at(name).as_text(); }

std::string Fields::text_or(std::string_view name, const std::string& otherwise) const {
  return has(name) ? text(name) : otherwise;
}

std::optional<bool> Fields::boolean(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const Fields field = at(name);
  if (!field.value_->is_boolean()) field.fail_kind("true or false");
  return field.value_->get<bool>();
}

bool Fields::boolean_or(std::string_view name, bool otherwise) const {
  return boolean(name).value_or(otherwise);
}

std::int64_t Fields::integer(std::string_view name) const { return at(name).as_integer(); }

std::int64_t Fields::integer_or(std::string_view name, std::int64_t otherwise) const {
  return has(name) ? integer(name) : otherwise;
}

double Fields::number_or(std::string_view name, double otherwise) const {
  if (!has(name)) return otherwise;
  const Fields field = at(name);
  if (!field.value_->is_number()) field.fail_kind("a number");
  return field.value_->get<double>();
}

Fields Fields::section(std::string_view name) const {
  const Fields field = at(name);
  if (!field.is_object()) field.fail_kind("an object");
  return field;
}

std::vector<Fields> Fields::list(std::string_view name) const { return at(name).as_list(); }

std::vector<std::pair<std::string, Fields>> Fields::members() const {
  if (!is_object()) fail_kind("an object");
  std::vector<std::pair<std::string, Fields>> all;
  for (const auto& [key, value] : value_->items()) {
    all.emplace_back(key, Fields(value, where_ + '.' + key, *source_));
  }
  return all;
}

}  // namespace eckart::detail
