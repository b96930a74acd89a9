// One entry of a safetensors header, read event by event.
#pragma once

#include "eckart/io/json_events.h"
#include "eckart/io/safetensors_entries.h"
#include "eckart/io/safetensors_rules.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eckart {

/// Takes the events from an entry's name to its end and adds the tensor to the entries.
class EntryReader {
 public:
  EntryReader(const HeaderReading& reading, HeaderEntries& entries)
      : reading_(reading), entries_(entries) {}

  void begin(std::string_view name, JsonPlace key);
  /// The entry is an array, at `place`, which only the reference reader lets pass.
  void begin_positional(JsonPlace place);
  void open(JsonKind kind, std::uint64_t at);
  /// True when that was the entry's end.
  bool close(std::uint64_t end);
  void key(std::string_view name, JsonPlace place);
  void scalar(const JsonScalar& value, JsonPlace place);

 private:
  enum class State { entry, shape, offsets, skipped };

  void open_value(JsonKind kind, JsonPlace place);
  void read_dtype(const JsonScalar& value, JsonPlace place);
  void add_size(const JsonScalar& value, JsonPlace place);
  void add_offset(const JsonScalar& value, JsonPlace place);
  void wrong_field(const std::string& what, JsonPlace place);
  bool begin_field(EntryField field, JsonPlace place);
  void next_position(JsonPlace place);
  void finish_offsets(JsonPlace place);
  void finish(std::uint64_t end);
  void add(Finding finding, JsonPlace place) const {
    finding.tensor = draft_.name;
    reading_.add_at(std::move(finding), place);
  }
  void add_error(std::string_view rule, const std::string& message, JsonPlace place) const {
    add({.rule = std::string(rule), .message = message}, place);
  }

  const HeaderReading& reading_;
  HeaderEntries& entries_;
  State state_ = State::entry;
  int depth_ = 0;  // of arrays and objects within the entry
  EntryDraft draft_;
  std::optional<EntryField> field_;  // nothing: one that an entry does not have
  bool is_positional_ = false;
  std::size_t position_ = 0;  // in a positional entry
  std::size_t n_broken_ = 0;
};

}  // namespace eckart
