#include "eckart/lora/merge_settle.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/narrow.h"
#include "eckart/io/scan.h"
#include "eckart/io/widen.h"
#include "eckart/lora/merge_errors.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace eckart {
namespace {

bool has_zeros_alone(const Adapter& adapter, const StoredTensor& tensor) {
  return scan_values(tensor.dtype, adapter.file().bytes(tensor)).all_zero;
}

// A quantized tensor that stays is its parts, as they lie.
void expand_quantized(const MergeSources& sources, MergePlan& plan) {
  std::vector<PlannedTensor> expanded;
  for (PlannedTensor& tensor : plan.tensors) {
    if (!tensor.base->is_quantized || tensor.fate != TensorFate::copied) {
      expanded.push_back(std::move(tensor));
      continue;
    }
    std::vector<std::uint32_t> parts = tensor.base->sides;
    parts.push_back(tensor.base->values);
    for (const std::uint32_t part : parts) {
      const CheckpointTensor& stored = sources.base.tensors()[part];
      expanded.push_back({.name = stored.stored->name,
                          .dtype = stored.stored->dtype,
                          .shape = stored.stored->shape,
                          .shard = stored.shard,
                          .stored = stored.stored});
    }
  }
  plan.tensors = std::move(expanded);
}

}  // namespace

void settle_dtypes(const MergeSources& sources, const MergeRules& rules, MergePlan& plan) {
  const auto is_scaled = [](const PlannedTensor& tensor) {
    return tensor.base->is_quantized && why_unreadable(*tensor.base).empty();
  };
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.fate == TensorFate::copied || !tensor.base->is_quantized) continue;
    if (!is_scaled(tensor)) fail_quantized(tensor);
    plan.is_dequantized = true;
  }
  if (rules.dtype && std::any_of(plan.tensors.begin(), plan.tensors.end(), is_scaled)) {
    plan.is_dequantized = true;
  }
  if (plan.is_dequantized) {
    std::erase_if(plan.tensors, [](const PlannedTensor& tensor) {
      return tensor.base->kind == TensorKind::quantization;  // of the key-value cache
    });
  }
  for (PlannedTensor& tensor : plan.tensors) {
    if (plan.is_dequantized && tensor.base->is_quantized) {
      if (!is_scaled(tensor)) fail_quantized(tensor);
      tensor.dtype = rules.dtype.value_or(Dtype::bf16);
      if (tensor.fate == TensorFate::copied) tensor.fate = TensorFate::converted;
    } else if (rules.dtype && is_floating(tensor.dtype) && is_widenable(tensor.dtype) &&
               tensor.base->kind == TensorKind::parameter && tensor.dtype != *rules.dtype) {
      tensor.dtype = *rules.dtype;
      if (tensor.fate == TensorFate::copied) tensor.fate = TensorFate::converted;
    }
    if (tensor.fate != TensorFate::copied && !is_narrowable(tensor.dtype)) {
      throw_argument_error("merge: " + printable(tensor.name) + " is stored as " +
                               std::string(to_string(tensor.dtype)) +
                               ", which nothing is rounded to here",
                           "`--dtype F32` writes another one");
    }
  }
  if (rules.dtype || plan.is_dequantized) plan.config_dtype = rules.dtype.value_or(Dtype::bf16);
  expand_quantized(sources, plan);
}

void settle_vocabulary(const MergeSources& sources, const std::optional<TiedEmbeddings>& tied,
                       MergePlan& plan) {
  std::optional<std::size_t> grown;
  std::map<std::string, Index> rows;  // of embedding and head
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const PlannedTensor& tensor = plan.tensors[i];
    const bool is_table = is_embedding_name(tensor.name) || is_head_name(tensor.name) ||
                          (tied && (tensor.name == tied->embedding || tensor.name == tied->head));
    if (is_table && tensor.shape.rank() == 2) rows.emplace(tensor.name, tensor.shape.size(0));
    if (tensor.saved != nullptr && !same_sizes(tensor.shape, tensor.base->shape)) grown = i;
  }
  if (!grown) return;
  const PlannedTensor& table = plan.tensors[*grown];
  for (const auto& [name, n] : rows) {
    if (n == table.shape.size(0)) continue;
    const bool is_other_side = tied && (name == tied->head || name == tied->embedding);
    throw_argument_error(
        "merge: " + printable(table.name) + " has " + std::to_string(table.shape.size(0)) +
            " rows in " + shown(sources.adapters[table.saved_by]) + " and " + printable(name) +
            " would keep " + std::to_string(n) + ", but both have a row a token",
        is_other_side ? "the two are tied in the base: `--fold-tied` keeps them so" : "");
  }
  plan.vocab_size = table.shape.size(0);
  plan.vocabulary_of = table.saved_by;
}

void check_something_changes(const MergeSources& sources, const MergePlan& plan) {
  bool has_delta = false;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.fate == TensorFate::replaced || tensor.fate == TensorFate::added) return;
    for (const PlannedDelta& delta : tensor.deltas) {
      has_delta = true;
      const Adapter& adapter = sources.adapters[delta.adapter];
      if (delta.module->magnitude != nullptr) return;
      if (delta.weight * delta.module->scale == 0) continue;
      if (delta.is_bias ? !has_zeros_alone(adapter, *delta.module->bias)
                        : !has_zeros_alone(adapter, *delta.module->a) &&
                              !has_zeros_alone(adapter, *delta.module->b)) {
        return;
      }
    }
  }
  throw_argument_error(
      "merge: the result would be the base, because " +
          std::string(has_delta ? "every B A of the adapters is 0" : "the adapters hold nothing"),
      has_delta ? "an adapter that was never trained has B = 0; a weight of 0 takes one away" : "");
}

}  // namespace eckart
