// Names as a tree in which equal subtrees are one. Included by the library alone.
#pragma once

#include "eckart/core/shape.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <vector>

namespace eckart::detail {

/// What the tree sums and compares of one named thing.
struct NameTreeItem {
  std::string_view name;   // split at its dots; must outlive the tree
  std::uint32_t item = 0;  // the caller's number of the thing
  std::uint64_t kind = 0;  // things of equal kind are alike, also in the next two
  Index parameters = 0;
  std::uint64_t bytes = 0;
  std::int32_t order = std::numeric_limits<std::int32_t>::max();  // smaller comes first
};

struct NameTreeChild {
  std::string_view part;
  Index number = -1;  // of a numeric part
  std::uint32_t node = 0;
};

/// A module, a thing, or both. A node stands for all subtrees that hold the same names below them
/// with things of the same kinds: what it says of one is that of the first.
struct NameTreeNode {
  std::int64_t item = -1;    // a thing whose whole name ends here
  bool has_numbers = false;  // a numeric part stands below
  std::int32_t order = std::numeric_limits<std::int32_t>::max();
  Index n_items = 0;  // of the subtree, as are the sums
  Index parameters = 0;
  std::uint64_t bytes = 0;
  std::vector<NameTreeChild> children;  // in the order of their parts (see `path_less`)
  std::vector<std::uint32_t> by_order;  // positions in `children` as they are to be shown
};

/// Built from names in path order; holds no more than the distinct subtrees. Whether two subtrees
/// are alike is decided exactly. Time n log n in the number of names.
class NameTree {
 public:
  NameTree();

  /// The next thing. Names come in the order of `path_less`; of equal names the first counts.
  void add(const NameTreeItem& item);
  /// Ends the tree; to be called once, after the last `add`.
  void finish();

  const NameTreeNode& node(std::uint32_t index) const { return nodes_[index]; }
  const NameTreeNode& root() const { return nodes_.back(); }
  /// The child of that name, or nullptr.
  const NameTreeNode* find(const NameTreeNode& parent, std::string_view part) const;

 private:
  struct Open {
    std::string_view part;
    std::uint64_t kind = 0;  // of its own thing, plus 1; 0: it has none
    NameTreeNode node;
  };

  void close_last();
  void sort_for_show(NameTreeNode& node) const;
  std::uint32_t node_of(Open&& open);
  std::uint64_t part_id(const NameTreeChild& child);

  std::vector<NameTreeNode> nodes_;  // closed ones, the root last
  std::vector<Open> path_;           // from the root to the thing added last
  // Ordered: a hostile file can choose names that collide in a hash table.
  std::map<std::string_view, std::uint64_t> part_ids_;  // of texts
  std::map<std::uint64_t, std::uint32_t> leaves_;       // nodes without children, by their kinds
  std::map<std::vector<std::uint64_t>, std::uint32_t> alike_;
  std::vector<std::uint64_t> key_;
};

/// Part by part: numbers by value, before texts by their bytes. All names below one path stand
/// together in this order.
bool path_less(std::string_view a, std::string_view b);

}  // namespace eckart::detail
