// Differences being gathered: the same difference of many layers and experts becomes one.
// Included by the library alone.
#pragma once

#include "eckart/model/cross_check.h"
#include "eckart/model/tensor_names.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// A difference of one tensor. In `sentence`, `{name}` stands for the folded name, `{where}` for
/// ` in 32 layers` or nothing, `{elements}` and `{bytes}` for the sums over all tensors.
struct OneDifference {
  DifferenceLevel level = DifferenceLevel::error;
  std::string_view kind;
  std::string name;
  std::string expected = {};
  std::string found = {};
  std::string sentence;
  std::string hint = {};
  Index elements = 0;
  std::uint64_t bytes = 0;
  bool has_layer = false;  // the first number of the name is a layer
};

class DifferenceList {
 public:
  /// Folds it with an equal one of another layer or expert, if there is one.
  void add(const OneDifference& difference);
  /// Adds one that is about no tensor, or is worded already.
  void add(Difference difference);
  /// All of them: errors, warnings, notes, each in the order of adding.
  std::vector<Difference> finish() const;

 private:
  struct Folded {
    OneDifference first;
    NameFold names;
    Index elements = 0;
    std::uint64_t bytes = 0;
  };

  static Difference worded(const Folded& folded);

  std::vector<Folded> folded_;
  std::vector<Difference> plain_;
  // Ordered: a hostile file can choose names that collide in a hash table.
  std::map<std::string, std::size_t> by_key_;
};

/// Differences between the index and the headers. With an architecture `input.matches` is set.
void compare_index(const CrossCheckInput& input, DifferenceList& list);

}  // namespace eckart::detail
