#include "eckart/model/summary.h"

#include "eckart/model/match_specs.h"
#include "eckart/model/name_tree.h"
#include "eckart/model/prose.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace eckart {
namespace {

using detail::NameTree;
using detail::NameTreeItem;
using detail::NameTreeNode;

// The shape with the table's axis names, where it is the table's shape.
Shape named_shape(const LogicalTensor& tensor, const TensorSpec* spec) {
  if (spec == nullptr) return tensor.shape;
  if (!tensor.has_shape) {
    return tensor.shape.count() == spec->shape.count() ? spec->shape : tensor.shape;
  }
  if (same_sizes(tensor.shape, spec->shape)) return spec->shape;
  if (tensor.storage == "MXFP4" && spec->shape.has_names() && tensor.shape.rank() >= 2 &&
      tensor.shape.rank() == spec->shape.rank()) {
    std::vector<std::string> names = spec->shape.names();
    std::swap(names[names.size() - 1], names[names.size() - 2]);
    return tensor.shape.named(std::move(names));
  }
  return tensor.shape;
}

class Summarizer {
 public:
  Summarizer(const std::vector<LogicalTensor>& tensors, const std::vector<std::size_t>& counted,
             const std::vector<const TensorSpec*>& specs, const NameTree& tree)
      : tensors_(tensors), counted_(counted), specs_(specs), tree_(tree) {}

  SummaryNode root() const {
    SummaryNode root;
    const NameTreeNode& node = tree_.node(0);
    root.parameters = node.parameters;
    root.bytes = node.bytes;
    root.n_tensors = node.n_items;
    root.children = rows_below(0, {}, false);
    const double whole = static_cast<double>(std::max<Index>(1, node.parameters));
    set_shares(root, 1.0 / whole);
    return root;
  }

 private:
  using Rows = std::vector<SummaryNode>;

  const LogicalTensor& tensor_of(const NameTreeNode& node) const {
    return tensors_[counted_[static_cast<std::size_t>(node.item)]];
  }

  SummaryNode tensor_row(const NameTreeNode& node, const std::string& path) const {
    const std::size_t at = counted_[static_cast<std::size_t>(node.item)];
    const LogicalTensor& tensor = tensors_[at];
    SummaryNode row;
    row.label = node.part;
    row.path = path;
    row.shape = named_shape(tensor, specs_[at]);
    row.is_tensor = true;
    row.storage = tensor.storage;
    row.parameters = tensor.parameters;
    row.bytes = tensor.bytes;
    row.n_tensors = 1;
    return row;
  }

  // The rows that stand for a node's children. `in_group`: below a numeric part, where the names
  // of modules go into the labels instead of making a level each.
  Rows rows_below(std::uint32_t index, const std::string& path, bool in_group) const {
    Rows rows;
    // Numeric children that are alike, where the first of them stands.
    std::unordered_map<std::uint32_t, std::vector<Index>> groups;
    for (const std::uint32_t below : tree_.node(index).children) {
      const NameTreeNode& node = tree_.node(below);
      if (node.number >= 0) groups[node.alike].push_back(node.number);
    }
    for (const std::uint32_t below : tree_.node(index).children) {
      const NameTreeNode& node = tree_.node(below);
      if (node.number >= 0) {
        const std::vector<Index> numbers = std::exchange(groups[node.alike], {});
        if (!numbers.empty()) rows.push_back(group_row(below, path, numbers));
        continue;
      }
      const std::string below_path =
          path.empty() ? std::string(node.part) : path + '.' + std::string(node.part);
      if (node.item >= 0 && !belongs_to_weight(index, node)) {
        rows.push_back(weight_row(index, node, below_path));
      }
      if (!node.children.empty()) add_module(below, below_path, in_group, rows);
    }
    return rows;
  }

  static std::string bias_name(std::string_view weight) {
    if (weight == "weight") return "bias";
    if (weight == "gamma") return "beta";
    return std::string(weight) + "_bias";
  }

  bool belongs_to_weight(std::uint32_t parent, const NameTreeNode& bias) const {
    std::string_view weight = bias.part == "bias"   ? "weight"
                              : bias.part == "beta" ? "gamma"
                                                    : bias.part;
    if (weight == bias.part) {
      if (!weight.ends_with("_bias")) return false;
      weight.remove_suffix(std::string_view("_bias").size());
    }
    const NameTreeNode* const found = tree_.find(parent, weight);
    return found != nullptr && found->item >= 0;
  }

  SummaryNode weight_row(std::uint32_t parent, const NameTreeNode& node,
                         const std::string& path) const {
    SummaryNode row = tensor_row(node, path);
    const NameTreeNode* const bias = tree_.find(parent, bias_name(node.part));
    if (bias == nullptr || bias->item < 0) return row;
    row.with_bias = true;
    row.parameters += tensor_of(*bias).parameters;
    row.bytes += tensor_of(*bias).bytes;
    ++row.n_tensors;
    return row;
  }

  void add_module(std::uint32_t index, const std::string& path, bool in_group, Rows& rows) const {
    const NameTreeNode& node = tree_.node(index);
    Rows below = rows_below(index, path, in_group);
    if (below.size() == 1 && below[0].is_tensor &&
        (below[0].label == "weight" || below[0].label == "gamma")) {
      below[0].label = node.part;
      below[0].path = path;
      rows.push_back(std::move(below[0]));
      return;
    }
    if (below.size() == 1 || in_group || node.has_numbers) {
      for (SummaryNode& row : below) {
        row.label.insert(0, std::string(node.part) + '.');
        rows.push_back(std::move(row));
      }
      return;
    }
    SummaryNode row;
    row.label = node.part;
    row.path = path;
    row.parameters = node.parameters;
    row.bytes = node.bytes;
    row.n_tensors = node.n_items;
    row.children = std::move(below);
    rows.push_back(std::move(row));
  }

  // Numeric siblings that are alike, as one row; `first` stands for them all.
  SummaryNode group_row(std::uint32_t first, const std::string& path,
                        const std::vector<Index>& numbers) const {
    const NameTreeNode& node = tree_.node(first);
    const std::string ranges = number_ranges(numbers);
    const std::string label = numbers.size() == 1 ? ranges : '{' + ranges + '}';
    const std::string group_path = path.empty() ? label : path + '.' + label;
    SummaryNode row;
    if (node.item >= 0 && node.children.empty()) row = tensor_row(node, group_path);
    row.label = label;
    row.path = group_path;
    row.n_copies = static_cast<Index>(numbers.size());
    row.parameters = node.parameters;
    row.bytes = node.bytes;
    row.n_tensors = node.n_items;
    row.children = rows_below(first, group_path, true);
    return row;
  }

  static void set_shares(SummaryNode& node, double one_parameter) {
    const double all_copies = one_parameter * static_cast<double>(node.n_copies);
    node.share = all_copies * static_cast<double>(node.parameters);
    for (SummaryNode& child : node.children) set_shares(child, all_copies);
  }

  const std::vector<LogicalTensor>& tensors_;
  const std::vector<std::size_t>& counted_;  // for each item of the tree, its tensor
  const std::vector<const TensorSpec*>& specs_;
  const NameTree& tree_;
};

// Why a tensor is not counted; empty for one that is.
std::string reason_not_counted(const LogicalTensor& tensor, const TensorSpec* spec,
                               const std::unordered_set<std::string_view>& lines_in_file) {
  if (tensor.kind == TensorKind::buffer) return "a buffer";
  if (tensor.kind == TensorKind::quantisation) return "a scale of quantised storage";
  if (spec == nullptr) return {};
  if (spec->is_extra) return "predicts a further token";
  if (!spec->tied_to.empty() && lines_in_file.contains(spec->tied_to)) {
    return "tied to " + spec->tied_to;
  }
  return {};
}

// Tensors not counted, those of one template, storage and reason as one.
class NotCountedList {
 public:
  void add(const LogicalTensor& tensor, const TensorSpec* spec, const std::string& reason) {
    // A predicting layer is one thing to the reader, whatever stands in it.
    std::string_view name = tensor.name;
    if (spec != nullptr && spec->is_extra) {
      name = name.substr(0, layer_end(name, spec->name));
    }
    NameTemplate parts = name_template(name);
    const std::string key = parts.text + '\n' + tensor.storage + '\n' + reason;
    const auto [place, is_new] = by_key_.emplace(key, entries_.size());
    if (is_new) entries_.push_back({{}, NameFold(std::move(parts.text))});
    Entry& entry = entries_[place->second];
    entry.names.add(parts.numbers);
    entry.sums.storage = tensor.storage;
    entry.sums.reason = reason;
    ++entry.sums.n_tensors;
    entry.sums.elements += tensor.shape.count();
    entry.sums.bytes += tensor.bytes;
  }

  std::vector<NotCounted> finish() const {
    std::vector<NotCounted> list;
    for (const Entry& entry : entries_) {
      list.push_back(entry.sums);
      list.back().name = entry.names.name();
    }
    return list;
  }

 private:
  struct Entry {
    NotCounted sums;
    NameFold names;
  };

  // Where the layer's number ends in a name of this line.
  static std::size_t layer_end(std::string_view name, std::string_view line) {
    const std::size_t slot = line.find("{layer}");
    if (slot == std::string_view::npos) return name.size();
    const std::string_view rest = line.substr(slot + std::string_view("{layer}").size());
    const auto n_dots = std::count(rest.begin(), rest.end(), '.');
    std::size_t end = name.size();
    for (auto i = n_dots; i > 0 && end != std::string_view::npos; --i) {
      end = end == 0 ? std::string_view::npos : name.rfind('.', end - 1);
    }
    return std::min(end, name.size());
  }

  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> by_key_;
};

std::vector<const TensorSpec*> specs_of(const std::vector<LogicalTensor>& tensors,
                                        const Architecture* architecture) {
  std::vector<const TensorSpec*> specs(tensors.size(), nullptr);
  if (architecture == nullptr) return specs;
  const SpecMatches matches = match_specs(*architecture, tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (matches.of[i].spec < 0) continue;
    specs[i] = &architecture->tensors[static_cast<std::size_t>(matches.of[i].spec)];
  }
  return specs;
}

// A number for what makes two tensors alike: shape, storage and kind.
class KindNumbers {
 public:
  std::uint64_t of(const LogicalTensor& tensor) {
    // The tensor before is most often of the same kind or the same layer's; a map of few entries.
    Key key{tensor.shape.sizes(), tensor.storage};
    return kinds_.emplace(std::move(key), kinds_.size()).first->second;
  }

 private:
  using Key = std::pair<std::vector<Index>, std::string>;
  std::map<Key, std::uint64_t> kinds_;
};

}  // namespace

Summary summarize(const std::vector<LogicalTensor>& tensors, const Architecture* architecture) {
  const std::vector<const TensorSpec*> specs = specs_of(tensors, architecture);
  std::unordered_set<std::string_view> lines_in_file;
  for (const TensorSpec* spec : specs) {
    if (spec != nullptr) lines_in_file.insert(spec->name);
  }
  KindNumbers kinds;
  NotCountedList not_counted;
  std::vector<std::size_t> counted;
  std::vector<NameTreeItem> items;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string reason = reason_not_counted(tensors[i], specs[i], lines_in_file);
    if (!reason.empty()) {
      not_counted.add(tensors[i], specs[i], reason);
      continue;
    }
    NameTreeItem item = {.name = tensors[i].name,
                         .kind = kinds.of(tensors[i]),
                         .parameters = tensors[i].parameters,
                         .bytes = tensors[i].bytes};
    if (specs[i] != nullptr) {
      item.order = static_cast<std::int32_t>(specs[i] - architecture->tensors.data());
    }
    counted.push_back(i);
    items.push_back(item);
  }
  const NameTree tree(items);
  return {Summarizer(tensors, counted, specs, tree).root(), not_counted.finish()};
}

}  // namespace eckart
