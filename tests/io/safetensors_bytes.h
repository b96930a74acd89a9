// Files of any content, sound or broken, and findings as lines of text.
#pragma once

#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace eckart::testing {

using Lines = std::vector<std::string>;

/// The eight bytes of a header's length.
inline std::string length_of(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xffU);
  return bytes;
}

/// A file of this header, whatever it is, and `data_bytes` zeros.
inline std::string file_of(std::string_view header, std::size_t data_bytes) {
  return length_of(header.size()) + std::string(header) + std::string(data_bytes, '\0');
}

/// JSON whose quotes are written as `'`.
inline std::string in_quotes(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c == '\'' ? '"' : c;
  return result;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// One line a finding: `error size_mismatch w 10-20: message | hint`, without what it lacks.
inline Lines lines_of(const Findings& findings) {
  Lines lines;
  for (const Finding& finding : findings.all()) {
    std::string line = finding.severity == Severity::error ? "error " : "warning ";
    line += finding.rule;
    if (!finding.tensor.empty()) line += ' ' + printable(finding.tensor, 20);
    if (finding.begin) line += fmt::format(" {}-{}", *finding.begin, finding.end.value_or(0));
    line += ": " + finding.message;
    if (!finding.hint.empty()) line += " | " + finding.hint;
    lines.push_back(std::move(line));
  }
  return lines;
}

/// `error size_mismatch w`: the same without places and texts.
inline Lines rules_of(const Findings& findings) {
  Lines rules;
  for (const Finding& finding : findings.all()) {
    std::string rule = finding.severity == Severity::error ? "error " : "warning ";
    rule += finding.rule;
    if (!finding.tensor.empty()) rule += ' ' + printable(finding.tensor, 20);
    rules.push_back(std::move(rule));
  }
  return rules;
}

struct ReadFile {
  SafetensorsHeader header;
  Findings findings;
};

inline ReadFile read_file(const std::string& file, Strictness strictness = Strictness::check) {
  ReadFile result;
  result.header = read_safetensors_header(bytes_of(file), "file", strictness, result.findings);
  return result;
}

}  // namespace eckart::testing
