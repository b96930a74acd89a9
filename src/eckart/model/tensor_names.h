// Tensor names that differ in numbers alone: `model.layers.{0..31}.mlp.up_proj.weight`.
#pragma once

#include "eckart/core/shape.h"

#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What stands for a number in a template: a byte that no name has, since headers are UTF-8. A
/// printable mark would be mistaken for the same text in a name.
inline constexpr char number_mark = '\xff';

/// A name with the numbers between its dots taken out: `h.3.mlp.weight` is `h.`, the mark,
/// `.mlp.weight` and 3.
struct NameTemplate {
  std::string text;
  std::vector<Index> numbers;

  friend bool operator==(const NameTemplate& a, const NameTemplate& b) = default;
};

/// Takes the numbers out. `01` or more than 18 digits are no number, so that filling the numbers
/// back in gives the name again.
NameTemplate name_template(std::string_view name);
/// The same into `result`, whose memory is used again: for hundreds of thousands of names.
void read_name_template(std::string_view name, NameTemplate& result);
/// The number that one part of a name is, or -1.
Index name_number(std::string_view part);

/// Names of one template, told as one.
class NameFold {
 public:
  explicit NameFold(std::string text) : text_(std::move(text)) {}

  /// Adds the name of these numbers, one for each mark.
  void add(const std::vector<Index>& numbers);
  /// How many names were added.
  Index count() const { return count_; }
  /// `model.layers.{0..31}.mlp.up_proj.weight`; one name alone is itself. Where not every
  /// combination of the numbers was added, the count says so: use it in messages.
  std::string name() const;
  /// The numbers that stand at the n-th mark, ascending, each once.
  std::vector<Index> numbers(std::size_t slot) const;

 private:
  std::string text_;
  std::vector<std::vector<Index>> slots_;
  Index count_ = 0;
};

}  // namespace eckart
