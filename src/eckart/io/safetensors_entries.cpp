#include "eckart/io/safetensors_entries.h"

#include "eckart/io/safetensors_entry.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

// Real metadata has some hundred entries; a map of more would take many times the file's size.
constexpr std::size_t max_metadata_entries = 100'000;
constexpr std::string_view metadata_key = "__metadata__";

class HeaderHandler : public JsonHandler {
 public:
  HeaderHandler(const HeaderReading& reading, HeaderEntries& entries)
      : reading_(reading), entries_(entries), entry_(reading, entries) {}

  bool open(JsonKind kind, std::uint64_t at) override;
  bool close(std::uint64_t end) override;
  bool key(std::string_view name, JsonPlace place) override;
  bool scalar(const JsonScalar& value, JsonPlace place) override;

  bool is_complete() const { return state_ == State::end; }

 private:
  enum class State { start, root, metadata, entry, skipped, end };

  void open_in_root(JsonKind kind, JsonPlace place);
  void scalar_in_root(const JsonScalar& value, JsonPlace place);
  void scalar_in_metadata(const JsonScalar& value, JsonPlace place);
  void note_metadata();
  void wrong_metadata(const std::string& what, JsonPlace place);
  void skip() {
    resumed_ = state_;
    state_ = State::skipped;
    skipped_depth_ = 1;
  }
  void add_error(std::string_view rule, const std::string& message, JsonPlace place) const {
    reading_.add_at({.rule = std::string(rule), .message = message}, place);
  }

  const HeaderReading& reading_;
  HeaderEntries& entries_;
  EntryReader entry_;
  State state_ = State::start;
  State resumed_ = State::start;  // after what is skipped
  int skipped_depth_ = 0;
  std::string name_;  // the last key of the header
  JsonPlace name_place_;
  std::string metadata_name_;
  bool has_metadata_ = false;
  bool metadata_is_full_ = false;
};

bool HeaderHandler::open(JsonKind kind, std::uint64_t at) {
  const JsonPlace place{at, at + 1};
  switch (state_) {
    case State::start:
      if (kind != JsonKind::object) {
        add_error("header_json", "the header is an array, but must be an object", place);
        return false;
      }
      state_ = State::root;
      break;
    case State::root:
      open_in_root(kind, place);
      break;
    case State::metadata:
      wrong_metadata(describe(kind), place);
      skip();
      break;
    case State::entry:
      entry_.open(kind, at);
      break;
    case State::skipped:
      ++skipped_depth_;
      break;
    case State::end:
      break;
  }
  return true;
}

bool HeaderHandler::close(std::uint64_t end) {
  switch (state_) {
    case State::root:
      state_ = State::end;
      break;
    case State::metadata:
      state_ = State::root;
      break;
    case State::entry:
      if (entry_.close(end)) state_ = State::root;
      break;
    case State::skipped:
      if (--skipped_depth_ == 0) state_ = resumed_;
      break;
    case State::start:
    case State::end:
      break;
  }
  return true;
}

bool HeaderHandler::key(std::string_view name, JsonPlace place) {
  if (state_ == State::root) {
    name_ = name;
    name_place_ = place;
  } else if (state_ == State::metadata) {
    metadata_name_ = name;
  } else if (state_ == State::entry) {
    entry_.key(name, place);
  }
  return true;
}

bool HeaderHandler::scalar(const JsonScalar& value, JsonPlace place) {
  switch (state_) {
    case State::start:
      add_error("header_json",
                fmt::format("the header is {}, but must be an object", describe(value)), place);
      return false;
    case State::root:
      scalar_in_root(value, place);
      break;
    case State::metadata:
      scalar_in_metadata(value, place);
      break;
    case State::entry:
      entry_.scalar(value, place);
      break;
    case State::skipped:
    case State::end:
      break;
  }
  return true;
}

void HeaderHandler::open_in_root(JsonKind kind, JsonPlace place) {
  if (name_ != metadata_key) {
    state_ = State::entry;
    entry_.begin(name_, name_place_);
    if (kind == JsonKind::array) entry_.begin_positional(place);
    return;
  }
  note_metadata();
  if (kind == JsonKind::object) {
    state_ = State::metadata;
    return;
  }
  add_error("metadata_type", "__metadata__ is an array, but must be an object of strings", place);
  skip();
}

void HeaderHandler::scalar_in_root(const JsonScalar& value, JsonPlace place) {
  if (name_ != metadata_key) {
    reading_.add_at({.tensor = name_,
                     .rule = "entry_type",
                     .message = fmt::format(
                         "is {}, but an entry must be an object of dtype, shape and data_offsets",
                         describe(value))},
                    place);
    entries_.has_all_ranges = false;
    return;
  }
  note_metadata();
  if (value.kind == JsonKind::null) return;
  add_error("metadata_type",
            fmt::format("__metadata__ is {}, but must be an object of strings", describe(value)),
            place);
}

void HeaderHandler::note_metadata() {
  if (!std::exchange(has_metadata_, true)) return;
  add_error("duplicate_name", "__metadata__ stands twice, but a key means one thing", name_place_);
}

void HeaderHandler::wrong_metadata(const std::string& what, JsonPlace place) {
  add_error(
      "metadata_type",
      fmt::format(
          "__metadata__: the value of \"{}\" is {}, at byte {}, but every value must be a string",
          printable(metadata_name_, 60), what, reading_.json_begin + place.begin),
      place);
}

void HeaderHandler::scalar_in_metadata(const JsonScalar& value, JsonPlace place) {
  if (value.kind != JsonKind::string) {
    wrong_metadata(describe(value), place);
    return;
  }
  if (entries_.metadata.size() >= max_metadata_entries) {
    if (std::exchange(metadata_is_full_, true)) return;
    add_error("metadata_entries",
              fmt::format("__metadata__ has more than {} entries, but no more are read",
                          max_metadata_entries),
              place);
    return;
  }
  if (!entries_.metadata.insert_or_assign(metadata_name_, std::string(value.text)).second) {
    add_error("duplicate_name",
              fmt::format("__metadata__: the key \"{}\" stands twice, but a key means one thing",
                          printable(metadata_name_, 60)),
              place);
  }
}

}  // namespace

HeaderEntries read_header_entries(std::string_view json, const HeaderReading& reading) {
  HeaderEntries entries;
  HeaderHandler handler(reading, entries);
  if (const std::optional<JsonError> error = read_json_events(json, handler)) {
    const std::uint64_t at = reading.json_begin + error->at;
    reading.add({.begin = at,
                 .rule = "header_json",
                 .message = fmt::format("the header is no valid JSON: at byte {}: {}", at,
                                        error->message)});
    return {};
  }
  entries.is_header = handler.is_complete();
  return entries;
}

}  // namespace eckart
