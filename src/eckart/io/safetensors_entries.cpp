#include "eckart/io/safetensors_entries.h"

#include "eckart/io/json_events.h"
#include "eckart/io/safetensors_rules.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::size_t max_axes = 64;
// Real metadata has some hundred entries; a map of more would take many times the file's size.
constexpr std::size_t max_metadata_entries = 100'000;
// Broken entries are kept to find the gaps and doubles among them, but not millions of them.
constexpr std::size_t max_broken_entries = 1000;
// Offsets up to here can be added to the begin of the data without overflow.
constexpr std::uint64_t max_offset = std::uint64_t{1} << 62U;

constexpr std::string_view metadata_key = "__metadata__";
constexpr const char* twice = "__metadata__ stands twice, but a key means one thing";

constexpr std::array<std::string_view, n_entry_fields> field_names = {"dtype", "shape",
                                                                      "data_offsets"};

std::string known_dtypes() {
  std::string names;
  for (int i = 0; i < n_dtypes; ++i) {
    if (i > 0) names += ' ';
    names += to_string(static_cast<Dtype>(i));
  }
  return names;
}

class HeaderHandler : public JsonHandler {
 public:
  HeaderHandler(const HeaderReading& reading, HeaderEntries& entries)
      : reading_(reading), entries_(entries) {}

  bool open(JsonKind kind, std::uint64_t at) override;
  bool close(std::uint64_t end) override;
  bool key(std::string_view name, JsonPlace place) override;
  bool scalar(const JsonScalar& value, JsonPlace place) override;

  bool is_complete() const { return state_ == State::end; }

 private:
  enum class State { start, root, metadata, entry, positional, shape, offsets, skipped, end };

  void open_in_root(JsonKind kind, JsonPlace place);
  void open_in_entry(JsonKind kind, JsonPlace place);
  void scalar_in_root(const JsonScalar& value, JsonPlace place);
  void scalar_in_entry(const JsonScalar& value, JsonPlace place);
  void scalar_in_metadata(const JsonScalar& value, JsonPlace place);
  void add_size(const JsonScalar& value, JsonPlace place);
  void add_offset(const JsonScalar& value, JsonPlace place);
  void wrong_metadata(const std::string& what, JsonPlace place);
  void wrong_field(const std::string& what, JsonPlace place);
  bool begin_field(EntryField field, JsonPlace place);
  void next_position(JsonPlace place);
  void finish_offsets(JsonPlace place);
  void finish_entry(std::uint64_t end);
  void skip() {
    resumed_ = state_;
    state_ = State::skipped;
    skipped_depth_ = 1;
  }
  bool is_metadata() const { return draft_.name == metadata_key; }
  void add(Finding finding, JsonPlace place) const {
    finding.begin = reading_.json_begin + place.begin;
    finding.end = reading_.json_begin + place.end;
    reading_.add(std::move(finding));
  }
  void add_error(std::string_view rule, const std::string& message, JsonPlace place) const {
    add({.tensor = is_metadata() ? "" : draft_.name, .rule = std::string(rule), .message = message},
        place);
  }

  const HeaderReading& reading_;
  HeaderEntries& entries_;
  State state_ = State::start;
  State resumed_ = State::start;      // after what is skipped
  State entry_state_ = State::entry;  // after a shape or offsets
  int skipped_depth_ = 0;
  EntryDraft draft_;
  std::optional<EntryField> field_;  // nothing: one that an entry does not have
  std::size_t position_ = 0;         // in a positional entry
  std::string metadata_name_;
  bool has_metadata_ = false;
  bool metadata_is_full_ = false;
  std::size_t n_broken_ = 0;
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
    case State::positional:
      next_position(place);
      open_in_entry(kind, place);
      break;
    case State::entry:
      open_in_entry(kind, place);
      break;
    case State::shape:
    case State::offsets:
      wrong_field(fmt::format("holds {}, but holds integers alone", describe(kind)), place);
      skip();
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
    case State::positional:
      finish_entry(end);
      state_ = State::root;
      break;
    case State::offsets:
      finish_offsets({end - 1, end});
      [[fallthrough]];
    case State::shape:
      state_ = entry_state_;
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
    draft_ = EntryDraft{};
    draft_.name = name;
    draft_.place = place;
    return true;
  }
  if (state_ == State::metadata) {
    metadata_name_ = name;
    return true;
  }
  if (state_ != State::entry) return true;
  const auto found = std::find(field_names.begin(), field_names.end(), name);
  field_.reset();
  if (found != field_names.end()) {
    const auto field = static_cast<EntryField>(found - field_names.begin());
    if (begin_field(field, place)) field_ = field;
  } else {
    const std::string what = printable(name, 60);
    add({.severity = reading_.lenient(),
         .tensor = draft_.name,
         .rule = "extra_field",
         .message = fmt::format(
             "has the field \"{}\", but an entry has only dtype, shape and data_offsets", what)},
        place);
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
    case State::positional:
      next_position(place);
      scalar_in_entry(value, place);
      break;
    case State::entry:
      scalar_in_entry(value, place);
      break;
    case State::shape:
      add_size(value, place);
      break;
    case State::offsets:
      add_offset(value, place);
      break;
    case State::skipped:
    case State::end:
      break;
  }
  return true;
}

void HeaderHandler::open_in_root(JsonKind kind, JsonPlace place) {
  if (is_metadata()) {
    if (std::exchange(has_metadata_, true)) {
      add_error("duplicate_name", twice, draft_.place);
    }
    state_ = State::metadata;
    if (kind != JsonKind::object) {
      add_error("metadata_type", "__metadata__ is an array, but must be an object of strings",
                place);
      state_ = State::root;
      skip();
    }
    return;
  }
  state_ = kind == JsonKind::object ? State::entry : State::positional;
  position_ = 0;
  if (state_ == State::positional) {
    add({.severity = reading_.lenient(),
         .tensor = draft_.name,
         .rule = "positional_entry",
         .message = "is an array, but an entry must be an object of dtype, shape and data_offsets"},
        place);
  }
}

void HeaderHandler::scalar_in_root(const JsonScalar& value, JsonPlace place) {
  if (!is_metadata()) {
    add_error("entry_type",
              fmt::format("is {}, but an entry must be an object of dtype, shape and data_offsets",
                          describe(value)),
              place);
    entries_.has_all_ranges = false;
    return;
  }
  if (std::exchange(has_metadata_, true)) {
    add_error("duplicate_name", twice, draft_.place);
  }
  if (value.kind != JsonKind::null) {
    add_error("metadata_type",
              fmt::format("__metadata__ is {}, but must be an object of strings", describe(value)),
              place);
  }
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

bool HeaderHandler::begin_field(EntryField field, JsonPlace place) {
  if (!std::exchange(draft_.seen[field], true)) return true;
  draft_.good[field] = false;
  add_error("duplicate_name",
            fmt::format("its {} stands twice, but a key means one thing", field_names[field]),
            place);
  return false;
}

// In an entry written as an array a value's position says which field it is.
void HeaderHandler::next_position(JsonPlace place) {
  field_.reset();
  if (position_ < n_entry_fields) {
    field_ = static_cast<EntryField>(position_);
    draft_.seen[position_] = true;
  } else if (position_ == n_entry_fields) {
    add_error("entry_type", "has more than dtype, shape and data_offsets", place);
  }
  ++position_;
}

void HeaderHandler::wrong_field(const std::string& what, JsonPlace place) {
  if (!field_) return;
  draft_.good[*field_] = false;
  const char* const rule = *field_ == shape_field     ? "shape"
                           : *field_ == offsets_field ? "data_offsets"
                                                      : "entry_type";
  add_error(rule, fmt::format("its {} {}", field_names[*field_], what), place);
}

void HeaderHandler::open_in_entry(JsonKind kind, JsonPlace place) {
  if (kind == JsonKind::array && (field_ == shape_field || field_ == offsets_field)) {
    entry_state_ = state_;
    state_ = field_ == shape_field ? State::shape : State::offsets;
    draft_.good[*field_] = true;
    return;
  }
  wrong_field(fmt::format("is {}, but must be {}", describe(kind),
                          field_ == dtype_field ? "a string" : "an array of integers"),
              place);
  skip();
}

void HeaderHandler::scalar_in_entry(const JsonScalar& value, JsonPlace place) {
  if (field_ != dtype_field || value.kind != JsonKind::string) {
    wrong_field(fmt::format("is {}, but must be {}", describe(value),
                            field_ == dtype_field ? "a string" : "an array of integers"),
                place);
    return;
  }
  if (const std::optional<Dtype> dtype = parse_dtype(value.text)) {
    draft_.dtype = *dtype;
    draft_.good[dtype_field] = true;
    return;
  }
  const std::string what = printable(value.text, 60);
  add({.tensor = draft_.name,
       .rule = "unknown_dtype",
       .message = fmt::format("its dtype is \"{}\", but safetensors knows no such dtype", what),
       .hint = "the dtypes are " + known_dtypes()},
      place);
}

void HeaderHandler::add_size(const JsonScalar& value, JsonPlace place) {
  if (!draft_.good[shape_field]) return;
  if (draft_.sizes.size() == max_axes) {
    wrong_field(fmt::format("has more than {} axes, but no more are read", max_axes), place);
  } else if (value.kind == JsonKind::natural &&
             value.natural <= static_cast<std::uint64_t>(std::numeric_limits<Index>::max())) {
    draft_.sizes.push_back(static_cast<Index>(value.natural));
  } else if (value.kind == JsonKind::natural || value.kind == JsonKind::large_integer) {
    draft_.good[shape_field] = false;
    add_error("shape_overflow",
              fmt::format("its shape holds {}, but a size has at most 63 bits", describe(value)),
              place);
  } else {
    wrong_field(fmt::format("holds {}, but a size is an integer from 0 on", describe(value)),
                place);
  }
}

void HeaderHandler::add_offset(const JsonScalar& value, JsonPlace place) {
  if (!draft_.good[offsets_field]) return;
  if (value.kind != JsonKind::natural) {
    wrong_field(fmt::format("holds {}, but an offset is an integer from 0 on", describe(value)),
                place);
  } else if (value.natural > max_offset) {
    wrong_field(fmt::format("holds {}, but no file has as many bytes", value.natural), place);
  } else if (draft_.n_offsets++ < draft_.offsets.size()) {
    draft_.offsets[draft_.n_offsets - 1] = value.natural;
  }
}

void HeaderHandler::finish_offsets(JsonPlace place) {
  if (!draft_.good[offsets_field] || draft_.n_offsets == draft_.offsets.size()) return;
  wrong_field(fmt::format("has {} {}, but needs two: begin and end", draft_.n_offsets,
                          draft_.n_offsets == 1 ? "number" : "numbers"),
              place);
}

void HeaderHandler::finish_entry(std::uint64_t end) {
  draft_.place.end = end;
  for (std::size_t field = 0; field < n_entry_fields; ++field) {
    if (draft_.seen[field]) continue;
    add_error("missing_field",
              fmt::format("has no {}, but an entry has dtype, shape and data_offsets",
                          field_names[field]),
              draft_.place);
  }
  HeaderEntries::Facts facts;
  facts.begin = static_cast<std::uint32_t>(reading_.json_begin + draft_.place.begin);
  facts.end = static_cast<std::uint32_t>(reading_.json_begin + end);
  facts.has_range = draft_.good[offsets_field] && draft_.offsets[0] <= draft_.offsets[1];
  facts.is_sound = draft_.is_complete();
  if (const std::optional<BrokenRule> broken = check_entry(draft_)) {
    add_error(broken->rule, broken->message, draft_.place);
    facts.is_sound = false;
  }
  if (!facts.has_range) entries_.has_all_ranges = false;
  if (!facts.is_sound && ++n_broken_ > max_broken_entries) {
    entries_.has_all_ranges = false;
    return;
  }
  StoredTensor tensor;
  tensor.name = std::move(draft_.name);
  tensor.dtype = draft_.dtype;
  if (facts.is_sound) tensor.shape = Shape(std::move(draft_.sizes));
  tensor.begin = draft_.offsets[0];
  tensor.end = draft_.offsets[1];
  entries_.tensors.push_back(std::move(tensor));
  entries_.facts.push_back(facts);
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
