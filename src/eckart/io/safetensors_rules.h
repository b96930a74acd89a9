// The rules of a safetensors header beyond its JSON: sizes, names, and the places of the tensors.
#pragma once

#include "eckart/io/json_events.h"
#include "eckart/io/safetensors_entries.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eckart {

enum EntryField : std::size_t { dtype_field, shape_field, offsets_field, n_entry_fields };

/// One entry while it is read.
struct EntryDraft {
  std::string name;
  JsonPlace place;
  std::array<bool, n_entry_fields> seen = {};
  std::array<bool, n_entry_fields> good = {};
  Dtype dtype = Dtype::f32;
  std::vector<Index> sizes;
  std::array<std::uint64_t, 2> offsets = {};
  std::size_t n_offsets = 0;

  bool is_complete() const { return good[dtype_field] && good[shape_field] && good[offsets_field]; }
};

struct BrokenRule {
  std::string rule;
  std::string message;
};

/// The first rule that the good fields of an entry break together: offsets in order, a size that
/// can be counted and fills whole bytes, and exactly the range it takes.
std::optional<BrokenRule> check_entry(const EntryDraft& draft);

/// Reports names that stand twice. The last entry of a name stays, as in the reference reader; the
/// others are no longer sound.
void check_names(HeaderEntries& entries, const HeaderReading& reading);

/// Positions of `tensors` by offset, then name.
std::vector<std::uint32_t> by_offset(const std::vector<StoredTensor>& tensors);

/// Reports overlaps, gaps, missing and trailing bytes of the tensors in `order` in a file of
/// `file_size` bytes whose data begins at `data_begin`.
struct DataRegion {
  std::uint64_t data_begin = 0;
  std::uint64_t file_size = 0;
};
void check_layout(const HeaderEntries& entries, const std::vector<std::uint32_t>& order,
                  const DataRegion& region, const HeaderReading& reading);

/// Reports what is legal but worth knowing: tensors without elements and unaligned ones.
void check_habits(const HeaderEntries& entries, std::uint64_t data_begin,
                  const HeaderReading& reading);

}  // namespace eckart
