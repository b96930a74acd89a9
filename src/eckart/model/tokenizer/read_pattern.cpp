#include "eckart/model/tokenizer/read_pattern.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

namespace eckart::detail {

Pattern read_pattern(const Fields& section) {
  const Fields pattern = section.section("pattern");
  if (pattern.has("String")) return Pattern::literal(pattern.text("String"));
  if (!pattern.has("Regex")) pattern.fail("has neither String nor Regex, but a pattern is one");
  try {
    return Pattern::regex(pattern.text("Regex"));
  } catch (const ArgumentError& error) {
    throw_argument_error(section.source() + ": " + pattern.where() + ": " + error.message());
  }
}

SplitBehavior read_behavior(const Fields& section) {
  const std::string name = section.text("behavior");
  if (name == "Removed") return SplitBehavior::removed;
  if (name == "Isolated") return SplitBehavior::isolated;
  if (name == "MergedWithPrevious") return SplitBehavior::merged_with_previous;
  if (name == "MergedWithNext") return SplitBehavior::merged_with_next;
  if (name == "Contiguous") return SplitBehavior::contiguous;
  section.refuse("of behavior \"" + printable(name, 60) + '"',
                 "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

}  // namespace eckart::detail
