#include "eckart/model/name_tree.h"

#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cstddef>

namespace eckart::detail {
namespace {

// Deeper than any model; the rest of a longer name is one part.
constexpr std::size_t max_depth = 48;

struct KeyHash {
  std::size_t operator()(const std::vector<std::uint64_t>& key) const {
    std::uint64_t hash = 0x9e3779b97f4a7c15;
    for (const std::uint64_t word : key) {
      hash = (hash ^ word) * 0xff51afd7ed558ccd;
      hash ^= hash >> 32;
    }
    return static_cast<std::size_t>(hash);
  }
};

}  // namespace

NameTree::NameTree(const std::vector<NameTreeItem>& items) {
  nodes_.emplace_back();
  parents_.push_back(0);
  part_ids_.push_back(0);
  for (std::size_t i = 0; i < items.size(); ++i) insert(items[i], static_cast<std::int32_t>(i));
  sum_up(items);
  sort_children();
  find_alike(items);
}

void NameTree::insert(const NameTreeItem& item, std::int32_t position) {
  std::vector<std::uint32_t> path;
  std::uint32_t at = 0;
  bool is_shared = true;
  std::string_view rest = item.name;
  while (true) {
    const std::size_t dot = path.size() + 1 < max_depth ? rest.find('.') : std::string_view::npos;
    const std::string_view part = rest.substr(0, dot);
    const std::size_t depth = path.size();
    is_shared = is_shared && depth < last_path_.size() && nodes_[last_path_[depth]].part == part;
    at = is_shared ? last_path_[depth] : child(at, part);
    path.push_back(at);
    if (dot == std::string_view::npos) break;
    rest = rest.substr(dot + 1);
  }
  if (nodes_[at].item < 0) nodes_[at].item = position;
  last_path_ = std::move(path);
}

std::uint32_t NameTree::child(std::uint32_t parent, std::string_view part) {
  const auto part_id =
      parts_.emplace(part, static_cast<std::uint32_t>(parts_.size())).first->second;
  const std::uint64_t key = (std::uint64_t{parent} << 32) | part_id;
  const auto next = static_cast<std::uint32_t>(nodes_.size());
  const auto [place, is_new] = by_parent_and_part_.emplace(key, next);
  if (!is_new) return place->second;
  nodes_.emplace_back();
  nodes_.back().part = part;
  nodes_.back().number = name_number(part);
  parents_.push_back(parent);
  part_ids_.push_back(part_id);
  nodes_[parent].children.push_back(next);
  return next;
}

const NameTreeNode* NameTree::find(std::uint32_t parent, std::string_view part) const {
  const auto part_id = parts_.find(part);
  if (part_id == parts_.end()) return nullptr;
  const auto place = by_parent_and_part_.find((std::uint64_t{parent} << 32) | part_id->second);
  return place == by_parent_and_part_.end() ? nullptr : &nodes_[place->second];
}

void NameTree::sum_up(const std::vector<NameTreeItem>& items) {
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    NameTreeNode& node = nodes_[i];
    if (node.item >= 0) {
      const NameTreeItem& item = items[static_cast<std::size_t>(node.item)];
      ++node.n_items;
      node.parameters += item.parameters;
      node.bytes += item.bytes;
      node.order = std::min(node.order, item.order);
    }
    if (i == 0) break;
    NameTreeNode& parent = nodes_[parents_[i]];
    parent.n_items += node.n_items;
    parent.parameters += node.parameters;
    parent.bytes += node.bytes;
    parent.order = std::min(parent.order, node.order);
    parent.has_numbers = parent.has_numbers || node.has_numbers || node.number >= 0;
  }
}

void NameTree::sort_children() {
  for (NameTreeNode& node : nodes_) {
    std::stable_sort(node.children.begin(), node.children.end(),
                     [&](std::uint32_t a, std::uint32_t b) {
                       const NameTreeNode& left = nodes_[a];
                       const NameTreeNode& right = nodes_[b];
                       if (left.number >= 0 && right.number >= 0) {
                         return left.number < right.number;
                       }
                       return left.order < right.order;
                     });
  }
}

void NameTree::find_alike(const std::vector<NameTreeItem>& items) {
  std::unordered_map<std::vector<std::uint64_t>, std::uint32_t, KeyHash> classes;
  std::vector<std::uint64_t> key;
  for (std::size_t i = nodes_.size(); i-- > 0;) {
    NameTreeNode& node = nodes_[i];
    key.clear();
    for (const std::uint32_t below : node.children) {
      key.push_back((std::uint64_t{part_ids_[below]} << 32) | nodes_[below].alike);
    }
    std::sort(key.begin(), key.end());
    key.push_back(node.item < 0 ? 0 : items[static_cast<std::size_t>(node.item)].kind + 1);
    node.alike = classes.emplace(key, static_cast<std::uint32_t>(classes.size())).first->second;
  }
}

}  // namespace eckart::detail
