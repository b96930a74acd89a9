#include "eckart/model/checkpoint_difference.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/compare_values.h"
#include "eckart/model/name_pattern.h"
#include "eckart/model/tensor_pairs.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace eckart {
namespace {

const LogicalTensor* find_tensor(const ComparedModel& model, std::string_view name) {
  for (const LogicalTensor& tensor : *model.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// What the architecture ties a tensor of that name to, where the file holds that.
const LogicalTensor* tied_tensor(const ComparedModel& model, const std::string& name) {
  if (model.architecture == nullptr) return nullptr;
  for (const TensorSpec& spec : model.architecture->tensors) {
    if (!spec.tied_to.empty() && spec.name == name) return find_tensor(model, spec.tied_to);
  }
  return nullptr;
}

// A tensor of the same model that a tensor is a copy of, byte by byte: what a tied matrix looks like
// that was stored twice.
const LogicalTensor* twin_of(const ComparedModel& model, const LogicalTensor& tensor) {
  if (tensor.shape.rank() < 2) return nullptr;
  for (const LogicalTensor& other : *model.tensors) {
    if (&other != &tensor && detail::has_same_bytes(model, tensor, model, other)) return &other;
  }
  return nullptr;
}

bool is_unreadable_integer(const LogicalTensor& tensor) {
  return !tensor.is_quantized && !is_floating(tensor.dtype);
}

// Why two tensors can be compared by their bytes alone; empty when they can be by their values.
std::string why_bytes_alone(const LogicalTensor& a, const LogicalTensor& b) {
  for (const LogicalTensor* tensor : {&a, &b}) {
    if (is_unreadable_integer(*tensor)) return tensor->storage + " is no floating dtype";
    if (std::string why = why_unreadable(*tensor); !why.empty()) return why;
  }
  return {};
}

bool is_selected(const TensorPair& pair, const CheckpointDifferenceOptions& options) {
  const auto fits = [&](const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return (pair.a != nullptr && matches_pattern(pair.a->name, pattern)) ||
             (pair.b != nullptr && matches_pattern(pair.b->name, pattern));
    });
  };
  return (options.include.empty() || fits(options.include)) && !fits(options.exclude);
}

// A pattern that fits nothing is a mistake that would go unseen.
void check_patterns(const TensorPairs& all, const CheckpointDifferenceOptions& options) {
  for (const std::vector<std::string>* patterns : {&options.include, &options.exclude}) {
    for (const std::string& pattern : *patterns) {
      const bool fits = std::any_of(all.pairs.begin(), all.pairs.end(), [&](const auto& pair) {
        return is_selected(pair, {.include = {pattern}});
      });
      if (fits) continue;
      throw_argument_error("diff: '" + printable(pattern) + "' fits no tensor of either checkpoint",
                           "* stands for any letters: '*" + printable(pattern) + "*'");
    }
  }
}

class Comparison {
 public:
  Comparison(const ComparedModel& a, const ComparedModel& b,
             const CheckpointDifferenceOptions& options)
      : a_(a), b_(b), options_(options) {}

  TensorDifference of(const TensorPair& pair) const {
    if (pair.a == nullptr) return one_sided(*pair.b, DifferenceKind::added);
    if (pair.b == nullptr) return one_sided(*pair.a, DifferenceKind::removed);
    return both(*pair.a, *pair.b);
  }

 private:
  TensorDifference both(const LogicalTensor& a, const LogicalTensor& b) const {
    TensorDifference result{.name = b.name,
                            .name_a = a.name,
                            .tensor_kind = b.kind,
                            .shape_a = a.shape,
                            .shape_b = b.shape,
                            .storage_a = a.storage,
                            .storage_b = b.storage};
    if (!same_sizes(a.shape, b.shape)) {
      result.kind = DifferenceKind::reshaped;
      if (a.shape.count() == b.shape.count()) result.note = "as many elements";
      return result;
    }
    result.same_bytes = detail::has_same_bytes(a_, a, b_, b);
    if (result.same_bytes) return result;
    if (const std::string why = why_bytes_alone(a, b); !why.empty()) {
      result.kind = DifferenceKind::changed;
      result.note = "other bytes; " + why;
      return result;
    }
    detail::compare_values({&a_, &a, &b_, &b}, options_, result);
    if (result.n_different > 0) result.kind = DifferenceKind::changed;
    return result;
  }

  // A tensor that only `own` has, `own` being b where it was added.
  TensorDifference one_sided(const LogicalTensor& tensor, DifferenceKind kind) const {
    const bool is_added = kind == DifferenceKind::added;
    const ComparedModel& own = is_added ? b_ : a_;
    const ComparedModel& other = is_added ? a_ : b_;
    const char* const side = is_added ? "before" : "after";
    if (const LogicalTensor* const tied = tied_tensor(other, tensor.name)) {
      TensorDifference result = is_added ? both(*tied, tensor) : both(tensor, *tied);
      result.note = std::string("tied to ") + tied->name + " " + side +
                    (result.note.empty() ? "" : "; " + result.note);
      if (!is_added) result.name = tensor.name;
      return result;
    }
    TensorDifference result{.name = tensor.name, .kind = kind, .tensor_kind = tensor.kind};
    (is_added ? result.shape_b : result.shape_a) = tensor.shape;
    (is_added ? result.storage_b : result.storage_a) = tensor.storage;
    if (!is_added) result.name_a = tensor.name;
    if (const LogicalTensor* const twin = twin_of(own, tensor)) {
      result.note = "a copy of " + twin->name;
    }
    return result;
  }

  ComparedModel a_;
  ComparedModel b_;
  const CheckpointDifferenceOptions& options_;
};

Index elements_of(const TensorPair& pair) {
  return (pair.b != nullptr ? pair.b : pair.a)->shape.count();
}

void add_totals(CheckpointDifference& result) {
  for (const TensorDifference& tensor : result.tensors) {
    if (tensor.kind != DifferenceKind::changed || !tensor.has_values) continue;
    result.norm_a = std::hypot(result.norm_a, tensor.norm_a);
    result.difference_norm = std::hypot(result.difference_norm, tensor.difference_norm);
  }
  if (result.difference_norm == 0) return;
  result.relative = result.norm_a == 0 ? std::numeric_limits<double>::infinity()
                                       : result.difference_norm / result.norm_a;
}

}  // namespace

std::string_view to_string(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::unchanged:
      return "unchanged";
    case DifferenceKind::changed:
      return "changed";
    case DifferenceKind::reshaped:
      return "reshaped";
    case DifferenceKind::added:
      return "added";
    case DifferenceKind::removed:
      return "removed";
  }
  return "";
}

CheckpointDifference checkpoint_difference(const ComparedModel& a, const ComparedModel& b,
                                           const CheckpointDifferenceOptions& options) {
  check_scales(*a.checkpoint, *a.tensors);
  check_scales(*b.checkpoint, *b.tensors);
  const TensorPairs all = tensor_pairs(*a.tensors, *b.tensors);
  check_patterns(all, options);
  CheckpointDifference result;
  result.prefix_of_a = all.prefix_of_a;
  result.prefix_of_b = all.prefix_of_b;
  std::vector<TensorPair> selected;
  std::copy_if(all.pairs.begin(), all.pairs.end(), std::back_inserter(selected),
               [&](const TensorPair& pair) { return is_selected(pair, options); });
  Index elements = 0;
  for (const TensorPair& pair : selected) elements += elements_of(pair);
  const Comparison comparison(a, b, options);
  for (const TensorPair& pair : selected) {
    result.tensors.push_back(comparison.of(pair));
    if (options.on_progress) options.on_progress(elements_of(pair), elements);
  }
  add_totals(result);
  return result;
}

}  // namespace eckart
