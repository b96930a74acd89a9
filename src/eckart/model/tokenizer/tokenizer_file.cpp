#include "eckart/model/tokenizer/tokenizer_file.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/json_events.h"

#include <charconv>
#include <optional>
#include <utility>

namespace eckart::detail {
namespace {

using nlohmann::json;

// Lists of added tokens are the largest part of the tree: ten values each.
constexpr std::size_t max_tree_values = 4'000'000;
constexpr std::size_t max_pieces = Vocabulary::id_limit;
constexpr std::size_t max_token_bytes = std::size_t{1} << 20U;

std::string in_quotes(std::string_view text) { return '"' + printable(text, 60) + '"'; }

double number_of(const JsonScalar& scalar) {
  double number = 0;
  std::from_chars(scalar.text.data(), scalar.text.data() + scalar.text.size(), number);
  return number;
}

json tree_of(const JsonScalar& scalar) {
  switch (scalar.kind) {
    case JsonKind::null:
      return nullptr;
    case JsonKind::boolean:
      return scalar.text == "true";
    case JsonKind::natural:
      return scalar.natural;
    case JsonKind::string:
      return std::string(scalar.text);
    case JsonKind::negative: {
      std::int64_t integer = 0;
      std::from_chars(scalar.text.data(), scalar.text.data() + scalar.text.size(), integer);
      return integer;
    }
    default:
      return number_of(scalar);
  }
}

class FileHandler : public JsonHandler {
 public:
  explicit FileHandler(TokenizerFile& file) : file_(file) {}

  bool open(JsonKind kind, std::uint64_t at) override {
    if (list_ != List::none) return open_in_list(kind, at);
    if (open_.empty() && kind != JsonKind::object)
      return fail(at, "it is a list, but a tokenizer is one JSON object");
    if (open_.size() == 2 && in_model_) {
      if (key_ == "vocab")
        return open_list(kind == JsonKind::object ? List::vocabulary : List::pieces);
      if (key_ == "merges" && kind == JsonKind::array) return open_list(List::merges);
    }
    if (open_.size() == 1) in_model_ = key_ == "model" && kind == JsonKind::object;
    json* const made = place(kind == JsonKind::object ? json::object() : json::array(), at);
    if (made != nullptr) open_.push_back(made);
    return made != nullptr;
  }
  bool close(std::uint64_t end) override {
    if (list_ == List::none) {
      open_.pop_back();
    } else if (in_element_) {
      in_element_ = false;
      return close_element(end);
    } else {
      list_ = List::none;
    }
    return true;
  }
  bool key(std::string_view name, JsonPlace place) override {
    key_ = name;
    // Of the vocabulary, adding a token finds it.
    if (list_ == List::vocabulary || !open_.back()->contains(key_)) return true;
    return fail(place.begin,
                "the key " + in_quotes(key_) + " stands twice, but each key has one value");
  }
  bool scalar(const JsonScalar& value, JsonPlace where) override {
    switch (list_) {
      case List::none:
        return place(tree_of(value), where.begin) != nullptr;
      case List::vocabulary:
        return add_token(value, where.begin);
      case List::pieces:
        return add_part_of_piece(value, where.begin);
      case List::merges:
        return in_element_ ? add_side(value, where.begin) : add_merge(value, where.begin);
    }
    return false;
  }

  const std::optional<JsonError>& error() const { return error_; }

 private:
  enum class List { none, vocabulary, pieces, merges };

  bool fail(std::uint64_t at, std::string message) {
    error_ = JsonError{at, std::move(message)};
    return false;
  }

  json* place(json value, std::uint64_t at) {
    if (++n_values_ > max_tree_values) {
      fail(at,
           "it holds more than 4,000,000 values beside vocabulary and merges, but no tokenizer "
           "does");
      return nullptr;
    }
    if (open_.empty()) {
      if (!value.is_object()) {
        fail(at, "it is no object, but a tokenizer is one JSON object");
        return nullptr;
      }
      file_.root = std::move(value);
      return &file_.root;
    }
    json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  // A mark in the tree, so that the key is found when it stands twice.
  bool open_list(List list) {
    (*open_.back())[key_] = true;
    list_ = list;
    file_.vocabulary_is_list = file_.vocabulary_is_list || list == List::pieces;
    return true;
  }
  bool open_in_list(JsonKind kind, std::uint64_t at) {
    if (in_element_ || kind != JsonKind::array || list_ == List::vocabulary) {
      return fail(at, "there is " + describe(kind) + ", but " + rule_of_list());
    }
    in_element_ = true;
    n_parts_ = 0;
    return true;
  }
  std::string rule_of_list() const {
    if (list_ == List::vocabulary) return "a vocabulary has an id for each token";
    if (list_ == List::pieces) return "a vocabulary of Unigram is a list of [token, score]";
    return "a merge is two tokens, \"a b\" or [\"a\", \"b\"]";
  }
  bool fail_list(std::uint64_t at, const JsonScalar& value) {
    return fail(at, "there is " + describe(value) + ", but " + rule_of_list());
  }
  bool close_element(std::uint64_t end) {
    if (n_parts_ == 2) return true;
    return fail(end, "there is a list of " + std::to_string(n_parts_) + ", but " + rule_of_list());
  }

  bool add_to_vocabulary(std::string_view token, std::uint64_t id, std::uint64_t at) {
    if (id >= Vocabulary::id_limit) {
      return fail(at, "the id of " + in_quotes(token) + " is " + std::to_string(id) +
                          ", but ids are below 2^22 = 4,194,304");
    }
    if (token.size() > max_token_bytes) {
      return fail(at, "a token has more than 1 MiB, but tokens are shorter");
    }
    switch (file_.vocabulary.add(token, static_cast<std::uint32_t>(id))) {
      case Vocabulary::Added::yes:
        return true;
      case Vocabulary::Added::token_stands_twice:
        return fail(at, "the token " + in_quotes(token) +
                            " stands twice in the vocabulary, but each has one id");
      case Vocabulary::Added::id_stands_twice:
        break;
    }
    return fail(at, "the id " + std::to_string(id) + " is that of " +
                        in_quotes(file_.vocabulary.token(static_cast<std::uint32_t>(id))) +
                        " and of " + in_quotes(token) + ", but each id is one token's");
  }
  bool add_token(const JsonScalar& value, std::uint64_t at) {
    if (value.kind != JsonKind::natural) return fail_list(at, value);
    return add_to_vocabulary(key_, value.natural, at);
  }
  bool add_part_of_piece(const JsonScalar& value, std::uint64_t at) {
    if (!in_element_ || n_parts_ >= 2 || (n_parts_ == 0) != (value.kind == JsonKind::string)) {
      return fail_list(at, value);
    }
    if (++n_parts_ == 1) {
      if (file_.scores.size() >= max_pieces)
        return fail(at, "the vocabulary has more than 2^22 tokens");
      return add_to_vocabulary(value.text, file_.scores.size(), at);
    }
    if (value.kind == JsonKind::null || value.kind == JsonKind::boolean)
      return fail_list(at, value);
    file_.scores.push_back(number_of(value));
    return true;
  }
  bool add_merge(const JsonScalar& value, std::uint64_t at) {
    if (value.kind != JsonKind::string) return fail_list(at, value);
    const std::size_t space = value.text.find(' ');
    if (space == std::string_view::npos ||
        value.text.find(' ', space + 1) != std::string_view::npos) {
      return fail_list(at, value);
    }
    file_.merges.push_back({file_.merge_text.size(), static_cast<std::uint32_t>(space),
                            static_cast<std::uint32_t>(value.text.size() - space - 1)});
    file_.merge_text += value.text.substr(0, space);
    file_.merge_text += value.text.substr(space + 1);
    return true;
  }
  bool add_side(const JsonScalar& value, std::uint64_t at) {
    if (value.kind != JsonKind::string || n_parts_ >= 2) return fail_list(at, value);
    const auto bytes = static_cast<std::uint32_t>(value.text.size());
    if (++n_parts_ == 1) {
      file_.merges.push_back({file_.merge_text.size(), bytes, 0});
    } else {
      file_.merges.back().right_bytes = bytes;
    }
    file_.merge_text += value.text;
    return true;
  }

  TokenizerFile& file_;
  std::vector<json*> open_;  // the containers around, which stay in place while they are open
  std::string key_;
  bool in_model_ = false;
  List list_ = List::none;
  bool in_element_ = false;  // of the list
  int n_parts_ = 0;          // of the element
  std::size_t n_values_ = 0;
  std::optional<JsonError> error_;
};

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view json, const std::string& source) {
  TokenizerFile file;
  file.source = source;
  FileHandler handler(file);
  std::optional<JsonError> error = read_json_events(json, handler);
  if (error) error->message += ", but a tokenizer is one JSON object";
  if (!error) error = handler.error();
  if (error) {
    throw_format_error(source, error->at,
                       source + ": byte " + std::to_string(error->at) + ": " + error->message);
  }
  return file;
}

}  // namespace eckart::detail
