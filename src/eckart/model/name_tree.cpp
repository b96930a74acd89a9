#include "eckart/model/name_tree.h"

#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>

namespace eckart::detail {
namespace {

// Deeper than any model; the rest of a longer name is one part.
constexpr std::size_t max_depth = 48;

bool part_less(std::string_view a, std::string_view b) {
  const Index left = name_number(a);
  const Index right = name_number(b);
  if (left >= 0 && right >= 0) return left < right;
  if (left >= 0 || right >= 0) return left >= 0;
  return a < b;
}

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('.')); }

}  // namespace

bool path_less(std::string_view a, std::string_view b) {
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t begin = 0;  // of the first part that differs
  std::size_t at = 0;
  for (; at < shorter && a[at] == b[at]; ++at) {
    if (a[at] == '.') begin = at + 1;
  }
  // One name may end where the other goes on with a dot: then it is the other's module.
  if (at == a.size())
    return at < b.size() &&
           (b[at] == '.' || part_less(a.substr(begin), first_part(b.substr(begin))));
  if (at == b.size())
    return a[at] != '.' && part_less(first_part(a.substr(begin)), b.substr(begin));
  return part_less(first_part(a.substr(begin)), first_part(b.substr(begin)));
}

NameTree::NameTree() { path_.emplace_back(); }

void NameTree::add(const NameTreeItem& item) {
  std::string_view rest = item.name;
  std::size_t depth = 1;
  bool is_last = false;
  while (!is_last) {
    const std::size_t dot = depth < max_depth ? rest.find('.') : std::string_view::npos;
    const std::string_view part = rest.substr(0, dot);
    is_last = dot == std::string_view::npos;
    if (depth >= path_.size() || path_[depth].part != part) {
      while (path_.size() > depth) close_last();
      path_.emplace_back();
      path_.back().part = part;
    }
    if (!is_last) rest = rest.substr(dot + 1);
    ++depth;
  }
  while (path_.size() > depth) close_last();
  Open& open = path_.back();
  if (open.node.item >= 0) return;
  open.kind = item.kind + 1;
  open.node.item = item.item;
  open.node.order = item.order;
  open.node.n_items = 1;
  open.node.parameters = item.parameters;
  open.node.bytes = item.bytes;
}

void NameTree::close_last() {
  Open open = std::move(path_.back());
  path_.pop_back();
  const std::string_view part = open.part;
  const Index number = name_number(part);
  NameTreeNode& parent = path_.back().node;
  parent.n_items += open.node.n_items;
  parent.parameters += open.node.parameters;
  parent.bytes += open.node.bytes;
  parent.order = std::min(parent.order, open.node.order);
  parent.has_numbers = parent.has_numbers || open.node.has_numbers || number >= 0;
  parent.children.push_back({part, number, node_of(std::move(open))});
}

// A number is its own id, shifted past the texts'.
std::uint64_t NameTree::part_id(const NameTreeChild& child) {
  if (child.number >= 0) return 2 * static_cast<std::uint64_t>(child.number) + 1;
  return part_ids_.emplace(child.part, 2 * part_ids_.size()).first->second;
}

std::uint32_t NameTree::node_of(Open&& open) {
  const auto next = static_cast<std::uint32_t>(nodes_.size());
  if (open.node.children.empty()) {
    const auto [place, is_new] = leaves_.emplace(open.kind, next);
    if (is_new) nodes_.push_back(std::move(open.node));
    return place->second;
  }
  key_.clear();
  for (const NameTreeChild& child : open.node.children) {
    key_.push_back(part_id(child));
    key_.push_back(child.node);
  }
  key_.push_back(open.kind);
  const auto place = alike_.lower_bound(key_);
  if (place != alike_.end() && place->first == key_) return place->second;
  alike_.emplace_hint(place, key_, next);
  nodes_.push_back(std::move(open.node));
  return next;
}

void NameTree::finish() {
  while (path_.size() > 1) close_last();
  nodes_.push_back(std::move(path_.back().node));  // the root, whether or not it is like another
  path_.clear();
  for (NameTreeNode& node : nodes_) sort_for_show(node);
}

// Numbers stay together, ascending, where the first of them would stand.
void NameTree::sort_for_show(NameTreeNode& node) const {
  std::int32_t first_number = std::numeric_limits<std::int32_t>::max();
  for (const NameTreeChild& child : node.children) {
    if (child.number >= 0) first_number = std::min(first_number, nodes_[child.node].order);
  }
  const auto key = [&](std::uint32_t position) {
    const NameTreeChild& child = node.children[position];
    const bool is_number = child.number >= 0;
    return std::make_tuple(is_number ? first_number : nodes_[child.node].order, !is_number,
                           child.number);
  };
  node.by_order.resize(node.children.size());
  std::iota(node.by_order.begin(), node.by_order.end(), 0U);
  std::stable_sort(node.by_order.begin(), node.by_order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
}

const NameTreeNode* NameTree::find(const NameTreeNode& parent, std::string_view part) const {
  const auto place = std::lower_bound(parent.children.begin(), parent.children.end(), part,
                                      [](const NameTreeChild& child, std::string_view wanted) {
                                        return part_less(child.part, wanted);
                                      });
  if (place == parent.children.end() || place->part != part) return nullptr;
  return &nodes_[place->node];
}

}  // namespace eckart::detail
