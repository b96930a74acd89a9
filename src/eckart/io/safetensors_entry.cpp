#include "eckart/io/safetensors_entry.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::size_t max_axes = 64;
// Broken entries are kept to find the gaps and doubles among them, but not millions of them.
constexpr std::size_t max_broken_entries = 1000;
// Offsets up to here can be added to the begin of the data without overflow.
constexpr std::uint64_t max_offset = std::uint64_t{1} << 62U;

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

}  // namespace

void EntryReader::begin(std::string_view name, JsonPlace key) {
  draft_ = EntryDraft{};
  draft_.name = name;
  draft_.place = key;
  state_ = State::entry;
  is_positional_ = false;
}

void EntryReader::begin_positional(JsonPlace place) {
  is_positional_ = true;
  position_ = 0;
  add({.severity = reading_.lenient(),
       .rule = "positional_entry",
       .message = "is an array, but an entry must be an object of dtype, shape and data_offsets"},
      place);
}

void EntryReader::open(JsonKind kind, std::uint64_t at) {
  const JsonPlace place{at, at + 1};
  switch (state_) {
    case State::entry:
      if (is_positional_) next_position(place);
      open_value(kind, place);
      break;
    case State::shape:
    case State::offsets:
      wrong_field(fmt::format("holds {}, but holds integers alone", describe(kind)), place);
      ++depth_;
      break;
    case State::skipped:
      ++depth_;
      break;
  }
}

bool EntryReader::close(std::uint64_t end) {
  if (state_ == State::entry) {
    finish(end);
    return true;
  }
  if (--depth_ > 0) return false;
  if (state_ == State::offsets) finish_offsets({end - 1, end});
  state_ = State::entry;
  return false;
}

void EntryReader::key(std::string_view name, JsonPlace place) {
  if (state_ != State::entry) return;
  const auto found = std::find(field_names.begin(), field_names.end(), name);
  field_.reset();
  if (found != field_names.end()) {
    const auto field = static_cast<EntryField>(found - field_names.begin());
    if (begin_field(field, place)) field_ = field;
    return;
  }
  const std::string what = printable(name, 60);
  add({.severity = reading_.lenient(),
       .rule = "extra_field",
       .message = fmt::format(
           "has the field \"{}\", but an entry has only dtype, shape and data_offsets", what)},
      place);
}

void EntryReader::scalar(const JsonScalar& value, JsonPlace place) {
  switch (state_) {
    case State::entry:
      if (is_positional_) next_position(place);
      read_dtype(value, place);
      break;
    case State::shape:
      if (depth_ == 1) add_size(value, place);
      break;
    case State::offsets:
      if (depth_ == 1) add_offset(value, place);
      break;
    case State::skipped:
      break;
  }
}

bool EntryReader::begin_field(EntryField field, JsonPlace place) {
  if (!std::exchange(draft_.seen[field], true)) return true;
  draft_.good[field] = false;
  add_error("duplicate_name",
            fmt::format("its {} stands twice, but a key means one thing", field_names[field]),
            place);
  return false;
}

// In an entry written as an array a value's position says which field it is.
void EntryReader::next_position(JsonPlace place) {
  field_.reset();
  if (position_ < n_entry_fields) {
    field_ = static_cast<EntryField>(position_);
    draft_.seen[position_] = true;
  } else if (position_ == n_entry_fields) {
    add_error("entry_type", "has more than dtype, shape and data_offsets", place);
  }
  ++position_;
}

void EntryReader::wrong_field(const std::string& what, JsonPlace place) {
  if (!field_) return;
  draft_.good[*field_] = false;
  const char* const rule = *field_ == shape_field     ? "shape"
                           : *field_ == offsets_field ? "data_offsets"
                                                      : "entry_type";
  add_error(rule, fmt::format("its {} {}", field_names[*field_], what), place);
}

void EntryReader::open_value(JsonKind kind, JsonPlace place) {
  if (kind == JsonKind::array && (field_ == shape_field || field_ == offsets_field)) {
    state_ = field_ == shape_field ? State::shape : State::offsets;
    draft_.good[*field_] = true;
    depth_ = 1;
    return;
  }
  wrong_field(fmt::format("is {}, but must be {}", describe(kind),
                          field_ == dtype_field ? "a string" : "an array of integers"),
              place);
  state_ = State::skipped;
  depth_ = 1;
}

void EntryReader::read_dtype(const JsonScalar& value, JsonPlace place) {
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
  add({.rule = "unknown_dtype",
       .message = fmt::format("its dtype is \"{}\", but safetensors knows no such dtype", what),
       .hint = "the dtypes are " + known_dtypes()},
      place);
}

void EntryReader::add_size(const JsonScalar& value, JsonPlace place) {
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

void EntryReader::add_offset(const JsonScalar& value, JsonPlace place) {
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

void EntryReader::finish_offsets(JsonPlace place) {
  if (!draft_.good[offsets_field] || draft_.n_offsets == draft_.offsets.size()) return;
  wrong_field(fmt::format("has {} {}, but needs two: begin and end", draft_.n_offsets,
                          draft_.n_offsets == 1 ? "number" : "numbers"),
              place);
}

void EntryReader::finish(std::uint64_t end) {
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

}  // namespace eckart
