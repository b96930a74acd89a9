#include "eckart/model/summary.h"

#include "eckart/model/name_tree.h"
#include "eckart/model/prose.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace eckart {
namespace {

using detail::NameTree;
using detail::NameTreeChild;
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
  Summarizer(const std::vector<LogicalTensor>& tensors, const std::vector<const TensorSpec*>& specs,
             const NameTree& tree)
      : tensors_(tensors), specs_(specs), tree_(tree) {}

  // The summary without what is not counted. `counted`: positions of the tensors in the tree.
  Summary run(const std::vector<std::uint32_t>& counted) {
    Summary summary;
    SummaryNode& root = summary.root;
    const NameTreeNode& node = tree_.root();
    root.parameters = node.parameters;
    root.bytes = node.bytes;
    root.n_tensors = node.n_items;
    root.children = rows_below(node, {}, false);
    if (n_rows_ > max_summary_rows) {
      summary.is_flat = true;
      root.children = flat_rows(counted);
      summary.n_omitted =
          static_cast<Index>(counted.size()) - static_cast<Index>(root.children.size());
    }
    const double whole = static_cast<double>(std::max<Index>(1, node.parameters));
    set_shares(root, 1.0 / whole);
    return summary;
  }

 private:
  using Rows = std::vector<SummaryNode>;

  Rows flat_rows(const std::vector<std::uint32_t>& counted) const {
    Rows rows;
    for (const std::uint32_t i : counted) {
      if (static_cast<Index>(rows.size()) == max_summary_rows) break;
      rows.push_back(row_of(i, tensors_[i].name, tensors_[i].name));
    }
    return rows;
  }

  SummaryNode tensor_row(const NameTreeNode& node, std::string_view label,
                         const std::string& path) const {
    return row_of(static_cast<std::size_t>(node.item), label, path);
  }

  SummaryNode row_of(std::size_t at, std::string_view label, const std::string& path) const {
    const LogicalTensor& tensor = tensors_[at];
    SummaryNode row;
    row.label = label;
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
  Rows rows_below(const NameTreeNode& parent, const std::string& path, bool in_group) {
    Rows rows;
    std::map<std::uint32_t, std::vector<Index>> groups;  // of numeric children, by node
    for (const NameTreeChild& child : parent.children) {
      if (child.number >= 0) groups[child.node].push_back(child.number);
    }
    for (const std::uint32_t position : parent.by_order) {
      if (++n_rows_ > max_summary_rows) break;  // what is made so far is thrown away
      const NameTreeChild& child = parent.children[position];
      const NameTreeNode& node = tree_.node(child.node);
      if (child.number >= 0) {
        // All that are alike stand where the first of them does.
        const std::vector<Index> numbers = std::exchange(groups[child.node], {});
        if (!numbers.empty()) rows.push_back(group_row(node, path, numbers));
        continue;
      }
      const std::string below =
          path.empty() ? std::string(child.part) : path + '.' + std::string(child.part);
      if (node.item >= 0 && !belongs_to_weight(parent, child.part)) {
        rows.push_back(weight_row(parent, child, below));
      }
      if (!node.children.empty()) add_module(child, below, in_group, rows);
    }
    return rows;
  }

  static std::string bias_name(std::string_view weight) {
    if (weight == "weight") return "bias";
    if (weight == "gamma") return "beta";
    return std::string(weight) + "_bias";
  }

  // Whether a tensor is the bias of a sibling.
  bool belongs_to_weight(const NameTreeNode& parent, std::string_view bias) const {
    std::string_view weight = bias == "bias" ? "weight" : bias == "beta" ? "gamma" : bias;
    if (weight == bias) {
      if (!weight.ends_with("_bias")) return false;
      weight.remove_suffix(std::string_view("_bias").size());
    }
    const NameTreeNode* const found = tree_.find(parent, weight);
    return found != nullptr && found->item >= 0;
  }

  SummaryNode weight_row(const NameTreeNode& parent, const NameTreeChild& child,
                         const std::string& path) const {
    SummaryNode row = tensor_row(tree_.node(child.node), child.part, path);
    const NameTreeNode* const bias = tree_.find(parent, bias_name(child.part));
    if (bias == nullptr || bias->item < 0) return row;
    const LogicalTensor& tensor = tensors_[static_cast<std::size_t>(bias->item)];
    row.with_bias = true;
    row.parameters += tensor.parameters;
    row.bytes += tensor.bytes;
    ++row.n_tensors;
    return row;
  }

  void add_module(const NameTreeChild& child, const std::string& path, bool in_group, Rows& rows) {
    const NameTreeNode& node = tree_.node(child.node);
    Rows below = rows_below(node, path, in_group);
    if (below.size() == 1 && below[0].is_tensor &&
        (below[0].label == "weight" || below[0].label == "gamma")) {
      below[0].label = child.part;
      below[0].path = path;
      rows.push_back(std::move(below[0]));
      return;
    }
    if (below.size() == 1 || in_group || node.has_numbers) {
      for (SummaryNode& row : below) {
        row.label.insert(0, std::string(child.part) + '.');
        rows.push_back(std::move(row));
      }
      return;
    }
    SummaryNode row;
    row.label = child.part;
    row.path = path;
    row.parameters = node.parameters;
    row.bytes = node.bytes;
    row.n_tensors = node.n_items;
    row.children = std::move(below);
    rows.push_back(std::move(row));
  }

  // Numeric siblings that are alike, as one row.
  SummaryNode group_row(const NameTreeNode& node, const std::string& path,
                        const std::vector<Index>& numbers) {
    const std::string ranges = number_ranges(numbers);
    const std::string label = numbers.size() == 1 ? ranges : '{' + ranges + '}';
    const std::string group_path = path.empty() ? label : path + '.' + label;
    SummaryNode row;
    if (node.item >= 0 && node.children.empty()) row = tensor_row(node, label, group_path);
    row.label = label;
    row.path = group_path;
    row.n_copies = static_cast<Index>(numbers.size());
    row.parameters = node.parameters;
    row.bytes = node.bytes;
    row.n_tensors = node.n_items;
    row.children = rows_below(node, group_path, true);
    return row;
  }

  static void set_shares(SummaryNode& node, double one_parameter) {
    const double all_copies = one_parameter * static_cast<double>(node.n_copies);
    node.share = all_copies * static_cast<double>(node.parameters);
    for (SummaryNode& child : node.children) set_shares(child, all_copies);
  }

  const std::vector<LogicalTensor>& tensors_;
  const std::vector<const TensorSpec*>& specs_;
  const NameTree& tree_;
  Index n_rows_ = 0;
};

// Why a tensor is not counted; empty for one that is.
std::string reason_not_counted(const LogicalTensor& tensor, const TensorSpec* spec,
                               const std::set<std::string_view>& lines_in_file) {
  if (tensor.kind == TensorKind::buffer) return "a buffer";
  if (tensor.kind == TensorKind::quantization) return "a scale of quantized storage";
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
  std::map<std::string, std::size_t> by_key_;  // hashes would collide where a file wants it
};

std::vector<const TensorSpec*> specs_of(const std::vector<LogicalTensor>& tensors,
                                        const Architecture* architecture,
                                        const SpecMatches* matches) {
  std::vector<const TensorSpec*> specs(tensors.size(), nullptr);
  if (architecture == nullptr) return specs;
  SpecMatches made;
  if (matches == nullptr) {
    made = match_specs(*architecture, tensors);
    matches = &made;
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (matches->of[i].spec < 0) continue;
    specs[i] = &architecture->tensors[static_cast<std::size_t>(matches->of[i].spec)];
  }
  return specs;
}

// A number for what makes two tensors alike: shape, storage, bytes, and the line of the table,
// which says what the axes are.
class KindNumbers {
 public:
  std::uint64_t of(const LogicalTensor& tensor, std::int32_t line) {
    return kinds_.emplace(Kind{&tensor, line}, kinds_.size()).first->second;
  }

 private:
  struct Kind {
    const LogicalTensor* example = nullptr;
    std::int32_t line = 0;

    friend bool operator<(const Kind& a, const Kind& b) {
      const auto numbers = [](const Kind& kind) {
        return std::tie(kind.line, kind.example->bytes);
      };
      if (numbers(a) != numbers(b)) return numbers(a) < numbers(b);
      const std::vector<Index>& left = a.example->shape.sizes();
      const std::vector<Index>& right = b.example->shape.sizes();
      if (left != right) return left < right;
      return a.example->storage < b.example->storage;
    }
  };

  std::map<Kind, std::uint64_t> kinds_;
};

NameTree tree_of(const std::vector<LogicalTensor>& tensors,
                 const std::vector<const TensorSpec*>& specs,
                 const std::vector<std::uint32_t>& counted, const Architecture* architecture) {
  KindNumbers kinds;
  NameTree tree;
  for (const std::uint32_t i : counted) {
    NameTreeItem item = {.name = tensors[i].name,
                         .item = i,
                         .parameters = tensors[i].parameters,
                         .bytes = tensors[i].bytes};
    if (specs[i] != nullptr) {
      item.order = static_cast<std::int32_t>(specs[i] - architecture->tensors.data());
    }
    item.kind = kinds.of(tensors[i], item.order);
    tree.add(item);
  }
  tree.finish();
  return tree;
}

}  // namespace

Summary summarize(const std::vector<LogicalTensor>& tensors, const Architecture* architecture,
                  const SpecMatches* matches) {
  const std::vector<const TensorSpec*> specs = specs_of(tensors, architecture, matches);
  std::set<std::string_view> lines_in_file;
  const TensorSpec* last = nullptr;
  for (const TensorSpec* spec : specs) {
    if (spec != nullptr && spec != last) lines_in_file.insert(spec->name);
    last = spec;
  }
  NotCountedList not_counted;
  std::vector<std::uint32_t> counted;
  counted.reserve(tensors.size());
  for (std::uint32_t i = 0; i < tensors.size(); ++i) {
    const std::string reason = reason_not_counted(tensors[i], specs[i], lines_in_file);
    if (reason.empty()) {
      counted.push_back(i);
    } else {
      not_counted.add(tensors[i], specs[i], reason);
    }
  }
  const auto less = [&](std::uint32_t a, std::uint32_t b) {
    return detail::path_less(tensors[a].name, tensors[b].name);
  };
  // A checkpoint's tensors mostly come in this order already.
  if (!std::is_sorted(counted.begin(), counted.end(), less)) {
    std::stable_sort(counted.begin(), counted.end(), less);
  }
  const NameTree tree = tree_of(tensors, specs, counted, architecture);
  Summary summary = Summarizer(tensors, specs, tree).run(counted);
  summary.not_counted = not_counted.finish();
  return summary;
}

}  // namespace eckart
