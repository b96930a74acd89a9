// The JSON of a safetensors header: entries as they are written, each checked by itself.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/json_events.h"
#include "eckart/io/safetensors.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {

/// Where findings go and what they say about it.
struct HeaderReading {
  const std::string& file;
  Strictness strictness;
  Findings& findings;
  std::uint64_t json_begin = 8;  // of the JSON in the file

  void add(Finding finding) const {
    finding.file = file;
    findings.add(std::move(finding));
  }
  /// `place` is within the JSON.
  void add_at(Finding finding, JsonPlace place) const {
    finding.begin = json_begin + place.begin;
    finding.end = json_begin + place.end;
    add(std::move(finding));
  }
  /// The severity of what the specification forbids though the reference reader lets it pass.
  Severity lenient() const {
    return strictness == Strictness::check ? Severity::error : Severity::warning;
  }
};

struct HeaderEntries {
  struct Facts {
    std::uint32_t begin = 0;  // of the entry in the file, from its name on
    std::uint32_t end = 0;
    bool has_range = false;  // its offsets are two integers in order
    bool is_sound = false;   // all is known, and the shape goes with the offsets
  };

  std::vector<StoredTensor> tensors;  // in the order of the header; offsets from the data's begin
  std::vector<Facts> facts;           // one a tensor
  std::map<std::string, std::string> metadata;
  /// Every entry's range is known, so that gaps between them mean something.
  bool has_all_ranges = true;
  /// The JSON is sound and is an object.
  bool is_header = false;
};

/// Reads `json`, which must not be longer than a header may be. One pass.
HeaderEntries read_header_entries(std::string_view json, const HeaderReading& reading);

}  // namespace eckart
