#include "eckart/model/config.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/json_events.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/validate.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <system_error>
#include <utility>

namespace eckart {
namespace detail {

struct ConfigValue {
  enum class Kind { null, boolean, integer, number, text, list, object };

  Kind kind = Kind::null;
  bool boolean = false;
  Index integer = 0;
  double number = 0;
  std::string text = {};  // of a text; of a number that is no 63-bit integer, its digits
  std::vector<ConfigValue> list = {};
  std::shared_ptr<ConfigValues> object = {};
};

struct ConfigValues {
  std::map<std::string, ConfigValue, std::less<>> entries;
};

}  // namespace detail

namespace {

using detail::ConfigValue;
using detail::ConfigValues;
using Kind = ConfigValue::Kind;

constexpr std::size_t max_config_bytes = std::size_t{16} << 20;
constexpr std::size_t max_depth = 64;
// A parsed value takes about a hundred bytes, however short it is in the file.
constexpr std::size_t max_values = 1'000'000;
constexpr Index max_size = Index{1} << 40;

std::string in_quotes(std::string_view text) { return '"' + printable(text, 60) + '"'; }

std::string shown(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return value.boolean ? "true" : "false";
    case Kind::integer:
      return std::to_string(value.integer);
    case Kind::number:
      return value.text.substr(0, 60);
    case Kind::text:
      return in_quotes(value.text);
    case Kind::list:
      return "a list";
    case Kind::object:
      return "an object";
  }
  return {};
}

// A number as the parser read it: whole where 63 bits hold it.
ConfigValue number_of(const JsonScalar& scalar) {
  const char* const begin = scalar.text.data();
  const char* const end = begin + scalar.text.size();
  Index integer = 0;
  if (const auto read = std::from_chars(begin, end, integer);
      read.ec == std::errc() && read.ptr == end) {
    return {.kind = Kind::integer, .integer = integer};
  }
  double number = 0;
  std::from_chars(begin, end, number);
  return {.kind = Kind::number, .number = number, .text = std::string(scalar.text)};
}

ConfigValue value_of(const JsonScalar& scalar) {
  switch (scalar.kind) {
    case JsonKind::null:
      return {};
    case JsonKind::boolean:
      return {.kind = Kind::boolean, .boolean = scalar.text == "true"};
    case JsonKind::string:
      return {.kind = Kind::text, .text = std::string(scalar.text)};
    default:
      return number_of(scalar);
  }
}

// Builds the values from the parser's events.
class Builder : public JsonHandler {
 public:
  bool open(JsonKind kind, std::uint64_t at) override {
    if (open_.size() >= max_depth) {
      return fail(at, "it nests deeper than 64 levels, but a config is flatter than that");
    }
    if (kind == JsonKind::array) {
      ConfigValue* const list = place({.kind = Kind::list}, at);
      if (list != nullptr) open_.push_back({.list = list});
      return list != nullptr;
    }
    auto object = std::make_shared<ConfigValues>();
    if (open_.empty()) {
      root_ = object;
    } else if (place({.kind = Kind::object, .object = object}, at) == nullptr) {
      return false;
    }
    open_.push_back({.object = object.get()});
    return true;
  }
  bool close(std::uint64_t /*end*/) override {
    open_.pop_back();
    return true;
  }
  bool key(std::string_view name, JsonPlace place) override {
    key_ = name;
    if (!open_.back().object->entries.contains(key_)) return true;
    return fail(place.begin,
                "the key " + in_quotes(key_) + " stands twice, but each key has one value");
  }
  bool scalar(const JsonScalar& value, JsonPlace where) override {
    return place(value_of(value), where.begin) != nullptr;
  }

  std::shared_ptr<const ConfigValues> root() const { return root_; }
  const std::optional<JsonError>& error() const { return error_; }

 private:
  struct Open {
    ConfigValues* object = nullptr;  // or
    ConfigValue* list = nullptr;
  };

  // Where a value goes; it stays in place while its container is open, because a list grows only
  // after its last element is closed.
  ConfigValue* place(ConfigValue value, std::uint64_t at) {
    if (++n_values_ > max_values) {
      fail(at, "it holds more than 1,000,000 values, but a config is smaller than that");
      return nullptr;
    }
    if (open_.empty()) {
      fail(at, "it begins with " + shown(value) + ", but a config is one JSON object");
      return nullptr;
    }
    if (open_.back().object != nullptr) {
      return &open_.back().object->entries.emplace(key_, std::move(value)).first->second;
    }
    open_.back().list->list.push_back(std::move(value));
    return &open_.back().list->list.back();
  }
  bool fail(std::uint64_t at, std::string message) {
    error_ = JsonError{at, std::move(message)};
    return false;
  }

  std::shared_ptr<ConfigValues> root_;
  std::vector<Open> open_;
  std::string key_;
  std::size_t n_values_ = 0;
  std::optional<JsonError> error_;
};

struct Found {
  std::string_view name;
  const ConfigValue* value = nullptr;
};

// The first of the names that stands there with a value.
Found find(const ConfigValues& values, Config::Names names) {
  for (const std::string_view name : names) {
    const auto at = values.entries.find(name);
    if (at != values.entries.end() && at->second.kind != Kind::null) return {name, &at->second};
  }
  return {};
}

[[noreturn]] void throw_wrong_kind(const Config& config, std::string_view name,
                                   const ConfigValue& value, std::string_view rule) {
  throw_format_error(config.source(), std::nullopt,
                     config.source() + ": " + std::string(name) + " is " + shown(value) + ", but " +
                         std::string(rule));
}

Index size_of(const Config& config, std::string_view name, const ConfigValue& value) {
  if (value.kind != Kind::integer || value.integer < 0 || value.integer > max_size) {
    throw_wrong_kind(config, name, value, "a size is a whole number from 0 to 2^40");
  }
  return value.integer;
}

double number_of(const Config& config, std::string_view name, const ConfigValue& value) {
  if (value.kind == Kind::integer) return static_cast<double>(value.integer);
  if (value.kind != Kind::number) throw_wrong_kind(config, name, value, "it must be a number");
  return value.number;
}

const std::string& text_of(const Config& config, std::string_view name, const ConfigValue& value) {
  if (value.kind != Kind::text) throw_wrong_kind(config, name, value, "it must be a text");
  return value.text;
}

}  // namespace

Config::Config(std::string source, std::shared_ptr<const detail::ConfigValues> values)
    : source_(std::move(source)), values_(std::move(values)) {}

std::string Config::model_type() const { return text({"model_type"}).value_or(std::string()); }

bool Config::has(std::string_view name) const { return values_->entries.contains(name); }

std::vector<std::string> Config::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_->entries) keys.push_back(key);
  return keys;
}

std::optional<Index> Config::size(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return std::nullopt;
  return size_of(*this, found.name, *found.value);
}

Index Config::required_size(Names names) const {
  if (const std::optional<Index> value = size(names)) return *value;
  std::string message = source_ + ": " + std::string(*names.begin()) + " is missing, but ";
  message += model_type().empty() ? "the model" : "a model of type " + in_quotes(model_type());
  std::string others;
  for (auto name = names.begin() + 1; name != names.end(); ++name) {
    others += (others.empty() ? "it may also be called " : " or ") + std::string(*name);
  }
  throw_format_error(source_, std::nullopt, message + " has no size without it", others);
}

std::optional<double> Config::number(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return std::nullopt;
  return number_of(*this, found.name, *found.value);
}

std::optional<bool> Config::boolean(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return std::nullopt;
  if (found.value->kind != Kind::boolean) {
    throw_wrong_kind(*this, found.name, *found.value, "it must be true or false");
  }
  return found.value->boolean;
}

std::optional<std::string> Config::text(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return std::nullopt;
  return text_of(*this, found.name, *found.value);
}

std::vector<std::string> Config::texts(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return {};
  if (found.value->kind != Kind::list) {
    throw_wrong_kind(*this, found.name, *found.value, "it must be a list of texts");
  }
  std::vector<std::string> texts;
  for (const ConfigValue& value : found.value->list) {
    texts.push_back(text_of(*this, std::string(found.name) + "'s element", value));
  }
  return texts;
}

std::vector<Index> Config::sizes(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return {};
  if (found.value->kind != Kind::list) {
    throw_wrong_kind(*this, found.name, *found.value, "it must be a list of whole numbers");
  }
  std::vector<Index> sizes;
  for (const ConfigValue& value : found.value->list) {
    sizes.push_back(size_of(*this, std::string(found.name) + "'s element", value));
  }
  return sizes;
}

std::vector<Index> Config::one_or_more(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr || found.value->kind == Kind::list) return sizes(names);
  return {size_of(*this, found.name, *found.value)};
}

std::vector<double> Config::numbers(Names names) const {
  const Found found = find(*values_, names);
  if (found.value == nullptr) return {};
  if (found.value->kind != Kind::list) {
    throw_wrong_kind(*this, found.name, *found.value, "it must be a list of numbers");
  }
  std::vector<double> numbers;
  for (const ConfigValue& value : found.value->list) {
    numbers.push_back(number_of(*this, std::string(found.name) + "'s element", value));
  }
  return numbers;
}

std::optional<Config> Config::section(std::string_view name) const {
  const Found found = find(*values_, {name});
  if (found.value == nullptr) return std::nullopt;
  if (found.value->kind != Kind::object) {
    throw_wrong_kind(*this, name, *found.value, "it must be an object");
  }
  return Config(source_ + " (" + std::string(name) + ")", found.value->object);
}

std::vector<Config> Config::sections(std::string_view name) const {
  const Found found = find(*values_, {name});
  if (found.value == nullptr) return {};
  if (found.value->kind != Kind::list) {
    throw_wrong_kind(*this, name, *found.value, "it must be a list of objects");
  }
  std::vector<Config> sections;
  for (const ConfigValue& value : found.value->list) {
    if (value.kind != Kind::object) {
      throw_wrong_kind(*this, std::string(name) + "'s element", value, "it must be an object");
    }
    sections.push_back(Config(source_, value.object));
  }
  return sections;
}

Config parse_config_list(std::string_view json, const std::string& name,
                         const std::string& source) {
  return parse_config("{\"" + name + "\":" + std::string(json) + "}", source);
}

Config parse_config(std::string_view json, const std::string& source) {
  if (json.size() > max_config_bytes) {
    throw_format_error(source, std::nullopt,
                       source + ": it is " + std::to_string(json.size()) +
                           " bytes long, but a config has at most 16 MiB");
  }
  Builder builder;
  // One level more than the builder takes: which levels a config has is its rule.
  std::optional<JsonError> error =
      read_json_events(json, builder, {.max_depth = static_cast<int>(max_depth) + 1});
  if (error) error->message += ", but a config is one JSON object";
  if (!error) error = builder.error();
  if (error) {
    throw_format_error(source, error->at,
                       source + ": byte " + std::to_string(error->at) + ": " + error->message);
  }
  return Config(source, builder.root());
}

namespace {

// Says what a file is that can be no config: a pointer, a page, another format.
void refuse_other_files(const MappedFile& file, std::string_view text) {
  const std::string who = printable_path(file.path()) + ": ";
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    throw_format_error(file.path(), 0,
                       who + "the file is " + (text.empty() ? "empty" : "blank") +
                           ", but a config is one JSON object",
                       "fetch the file again");
  }
  if (text.starts_with("\xEF\xBB\xBF")) {
    throw_format_error(file.path(), 0,
                       who + "the file begins with a byte order mark, but JSON has none",
                       "save it as UTF-8 without a byte order mark (BOM)");
  }
  if (text[first] == '{') return;
  const std::optional<MistakenFile> mistaken = recognize(file.bytes());
  // Of JSON that is no object the parser says what it is.
  if (!mistaken || mistaken->rule == "json_text") return;
  throw_format_error(file.path(), 0, who + mistaken->message + ", but a config is one JSON object",
                     mistaken->hint);
}

}  // namespace

Config load_config(const std::filesystem::path& path) {
  std::error_code ignored;  // what is wrong with the path, open_mapped says
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const MappedFile file = open_mapped(is_folder ? path / "config.json" : path);
  const std::span<const std::byte> bytes = file.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  refuse_other_files(file, text);
  return parse_config(text, file.path());
}

}  // namespace eckart
