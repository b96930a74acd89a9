#include "eckart/model/fit.h"

#include "eckart/core/errors.h"
#include "eckart/model/checked.h"
#include "eckart/model/count.h"

#include <algorithm>
#include <functional>

namespace eckart {
namespace {

// What every point needs to know, worked out once. Sums are saturated: they are only compared with
// the memory, and what is beyond 63 bits fits nowhere.
class Memory {
 public:
  Memory(const Architecture& arch, const FitOptions& options)
      : arch_(arch),
        options_(options),
        parameters_(count_parameters(arch).total),
        cache_(count_kv_cache(arch, {.context = 1, .batch = 1, .dtype = options.kv_dtype})),
        bytes_per_token_(packed_bytes(live_elements_per_token(arch), options.activation_dtype,
                                      "the activations of a token")),
        has_logits_(std::any_of(arch.tensors.begin(), arch.tensors.end(), [](const auto& spec) {
          return spec.role == Role::w_unembed && !spec.is_extra;
        })) {}

  Index weights_bytes(Dtype dtype) const {
    return packed_bytes(parameters_, dtype, "the weights' bytes");
  }

  FitPoint at(Index context, Index batch, Index weights_bytes) const {
    FitPoint point = {.context = context, .batch = batch, .weights_bytes = weights_bytes};
    for (const KvCacheGroup& group : cache_.groups) {
      const Index tokens = group.window == 0 ? context : std::min(context, group.window);
      point.kv_cache_bytes = saturated_sum(
          {point.kv_cache_bytes, saturated_product({group.bytes_per_token, tokens, batch})});
    }
    const Index all_tokens = saturated_product({context, batch});
    const Index at_once = arch_.is_decoder
                              ? std::max(batch, std::min(all_tokens, options_.tokens_at_once))
                              : all_tokens;
    const Index logits = has_logits_ ? saturated_product({4, arch_.n_vocab, batch}) : 0;
    point.working_bytes = saturated_sum({saturated_product({bytes_per_token_, at_once}), logits});
    point.total_bytes =
        saturated_sum({point.weights_bytes, point.kv_cache_bytes, point.working_bytes});
    return point;
  }

  bool holds(Index context, Index batch, Index weights_bytes) const {
    return at(context, batch, weights_bytes).total_bytes <= options_.bytes;
  }

 private:
  const Architecture& arch_;
  const FitOptions& options_;
  Index parameters_;
  KvCache cache_;
  Index bytes_per_token_;
  bool has_logits_;
};

// The largest value up to 2^40 that `holds`, which holds below whatever it holds at; 0 if none
// does.
Index largest(const std::function<bool(Index)>& holds) {
  Index below = 0;
  Index above = max_tokens + 1;
  while (above - below > 1) {
    const Index middle = below + (above - below) / 2;
    (holds(middle) ? below : above) = middle;
  }
  return below;
}

std::optional<Dtype> narrower_that_fits(const Memory& memory, Index weights_bytes) {
  for (const Dtype narrower : {Dtype::bf16, Dtype::f8_e4m3, Dtype::f4}) {
    const Index bytes = memory.weights_bytes(narrower);
    if (bytes < weights_bytes && memory.holds(1, 1, bytes)) return narrower;
  }
  return std::nullopt;
}

void note_context(const Architecture& arch, const Fit& fit, std::vector<std::string>& notes) {
  if (!fit.longest_context || fit.longest_context->context <= arch.context) return;
  const Index context = fit.longest_context->context;
  const std::string reach = context == max_tokens ? "any context, here up to 2^40 tokens,"
                                                  : std::to_string(context) + " tokens";
  notes.push_back("the memory holds " + reach + " but the model was made for " +
                  std::to_string(arch.context));
}

}  // namespace

Fit fit(const Architecture& arch, const FitOptions& options) {
  if (options.bytes < 1) {
    throw_argument_error("fit: the memory is " + std::to_string(options.bytes) +
                         " bytes, but must be at least 1");
  }
  check_range("fit: context", options.context, 0);
  check_range("fit: batch", options.batch, 1);
  check_range("fit: tokens_at_once", options.tokens_at_once, 1);
  const Memory memory(arch, options);
  Fit fit;
  fit.available_bytes = options.bytes;
  const auto [dtype, dtype_notes] = choose_weights_dtype(arch, options.weights_dtype);
  fit.weights_dtype = dtype;
  fit.notes = arch.assumptions;
  fit.weights_bytes =
      options.stored_weights_bytes ? *options.stored_weights_bytes : memory.weights_bytes(dtype);
  if (!options.stored_weights_bytes) {
    fit.notes.insert(fit.notes.end(), dtype_notes.begin(), dtype_notes.end());
  }
  const FitPoint least = memory.at(1, 1, fit.weights_bytes);
  if (least.total_bytes > options.bytes) {
    fit.missing_bytes = least.total_bytes - options.bytes;
    fit.dtype_that_fits = narrower_that_fits(memory, fit.weights_bytes);
    return fit;
  }
  const Index context =
      largest([&](Index value) { return memory.holds(value, options.batch, fit.weights_bytes); });
  if (context > 0) fit.longest_context = memory.at(context, options.batch, fit.weights_bytes);
  const Index asked = options.context == 0 ? arch.context : options.context;
  const Index batch =
      largest([&](Index value) { return memory.holds(asked, value, fit.weights_bytes); });
  if (batch > 0) fit.largest_batch = memory.at(asked, batch, fit.weights_bytes);
  note_context(arch, fit, fit.notes);
  return fit;
}

}  // namespace eckart
