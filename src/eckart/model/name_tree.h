// Names as a tree, with equal subtrees found. Included by the library alone.
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eckart::detail {

/// What the tree sums and compares of one named thing.
struct NameTreeItem {
  std::string_view name;   // split at its dots; must outlive the tree
  std::uint64_t kind = 0;  // things of equal kind are alike
  Index parameters = 0;
  std::uint64_t bytes = 0;
  std::int32_t order = std::numeric_limits<std::int32_t>::max();  // smaller comes first
};

/// A part of a name: a module, or a thing itself.
struct NameTreeNode {
  std::string_view part;
  std::int64_t number = -1;  // of a numeric part
  std::int32_t item = -1;    // a thing whose whole name ends here
  std::uint32_t alike = 0;   // equal for nodes whose subtrees are equal
  bool has_numbers = false;  // a numeric part stands below
  std::int32_t order = std::numeric_limits<std::int32_t>::max();
  Index n_items = 0;  // of the subtree, as are the sums
  Index parameters = 0;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> children;  // in order
};

/// Node 0 is the root. Two subtrees are alike when they hold the same names below them with things
/// of the same kinds; this is decided exactly, in time linear in the number of names.
class NameTree {
 public:
  explicit NameTree(const std::vector<NameTreeItem>& items);

  const NameTreeNode& node(std::uint32_t index) const { return nodes_[index]; }
  /// The child of that name, or nullptr.
  const NameTreeNode* find(std::uint32_t parent, std::string_view part) const;

 private:
  void insert(const NameTreeItem& item, std::int32_t position);
  std::uint32_t child(std::uint32_t parent, std::string_view part);
  void sum_up(const std::vector<NameTreeItem>& items);
  void sort_children();
  void find_alike(const std::vector<NameTreeItem>& items);

  std::vector<NameTreeNode> nodes_;
  std::vector<std::uint32_t> parents_;   // always before their children
  std::vector<std::uint32_t> part_ids_;  // equal for equal parts
  std::unordered_map<std::string_view, std::uint32_t> parts_;
  std::unordered_map<std::uint64_t, std::uint32_t> by_parent_and_part_;
  std::vector<std::uint32_t> last_path_;  // of the name inserted last: most names share a beginning
};

}  // namespace eckart::detail
