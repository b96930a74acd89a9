#include "eckart/lora/extract_buffers.h"

#include "eckart/model/tensor_pairs.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace eckart {
namespace {

constexpr std::array<std::string_view, 9> computed = {
    "position_ids", "token_type_ids", "inv_freq", "cos_cached",    "sin_cached",
    "masked_bias",  "attn.bias",      "mask",     "attention.bias"};

bool is_counted(const LogicalTensor* tensor) {
  return tensor != nullptr && tensor->kind == TensorKind::buffer &&
         std::none_of(computed.begin(), computed.end(),
                      [&](std::string_view end) { return tensor->name.ends_with(end); });
}

bool is_same(const ExtractSources& sources, const LogicalTensor& base, const LogicalTensor& tuned) {
  const CheckpointTensor& x = sources.base.tensors()[base.values];
  const CheckpointTensor& y = sources.tuned.tensors()[tuned.values];
  return x.stored->dtype == y.stored->dtype && same_sizes(x.stored->shape, y.stored->shape) &&
         std::ranges::equal(sources.base.bytes(x.stored->name),
                            sources.tuned.bytes(y.stored->name));
}

}  // namespace

void add_changed_buffers(const ExtractSources& sources, std::vector<PlannedExtract>& tensors) {
  const std::size_t n_before = tensors.size();
  for (const TensorPair& pair : tensor_pairs(sources.base_tensors, sources.tuned_tensors).pairs) {
    if (!is_counted(pair.a) && !is_counted(pair.b)) continue;
    const bool is_pair = pair.a != nullptr && pair.b != nullptr;
    if (is_pair && is_same(sources, *pair.a, *pair.b)) continue;
    PlannedExtract entry;
    const LogicalTensor& shown = pair.b != nullptr ? *pair.b : *pair.a;
    entry.name = shown.name;
    entry.shape = shown.shape;
    entry.fate = ExtractFate::skipped;
    entry.reason = std::string("no parameter, so that no adapter holds it: ") +
                   (is_pair             ? "it is not the base's"
                    : pair.b != nullptr ? "the base has it not"
                                        : "only the base has it");
    tensors.push_back(std::move(entry));
  }
  if (tensors.size() == n_before) return;
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return natural_less(a.name, b.name); });
}

}  // namespace eckart
