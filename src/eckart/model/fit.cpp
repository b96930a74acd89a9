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
        purpose_(options.lora_rank > 0 ? FitPurpose::lora_training
                 : options.train       ? FitPurpose::training
                                       : FitPurpose::inference),
        cache_(count_kv_cache(arch, {.context = 1, .batch = 1, .dtype = options.kv_dtype})),
        has_logits_(std::any_of(arch.tensors.begin(), arch.tensors.end(), [](const auto& spec) {
          return spec.role == Role::w_unembed && !spec.is_extra;
        })) {
    auto [dtype, notes] = choose_weights_dtype(arch, options.weights_dtype);
    dtype_ = dtype;
    dtype_notes_ = std::move(notes);
    const Dtype activations = options.activation_dtype.value_or(activation_dtype(arch));
    if (purpose_ == FitPurpose::inference) {
      bytes_per_token_ =
          packed_bytes(live_elements_per_token(arch), activations, "the activations of a token");
      return;
    }
    // Of one token: the score table has one entry then.
    const Activations one = count_activations(arch, {.context = 1, .dtype = activations});
    bytes_per_token_ = one.training_bytes_fused;
    bytes_per_pair_ = one.training_bytes - one.training_bytes_fused;
    trained_bytes_ = count_trained();
  }

  FitPurpose purpose() const { return purpose_; }
  Dtype dtype() const { return dtype_; }
  const std::vector<std::string>& dtype_notes() const { return dtype_notes_; }
  Index weights_bytes() const {
    return options_.stored_weights_bytes ? *options_.stored_weights_bytes
                                         : weight_bytes(arch_, dtype_);
  }
  Index asked_context() const {
    return options_.context == 0 ? std::max<Index>(1, arch_.context) : options_.context;
  }

  FitPoint at(Index context, Index batch, Index weights_bytes) const {
    FitPoint point = {.context = context, .batch = batch, .weights_bytes = weights_bytes};
    if (purpose_ == FitPurpose::inference) {
      add_inference(point);
    } else {
      point.trained_bytes = trained_bytes_;
      point.working_bytes =
          saturated_sum({saturated_product({bytes_per_token_, context, batch}),
                         saturated_product({bytes_per_pair_, context, context, batch})});
    }
    point.total_bytes = saturated_sum(
        {point.weights_bytes, point.kv_cache_bytes, point.trained_bytes, point.working_bytes});
    return point;
  }

  bool holds(Index context, Index batch, Index weights_bytes) const {
    return at(context, batch, weights_bytes).total_bytes <= options_.bytes;
  }

 private:
  Index count_trained() const {
    if (purpose_ == FitPurpose::lora_training) {
      const LoraCount lora = count_lora(arch_, {.rank = options_.lora_rank,
                                                .targets = options_.lora_targets,
                                                .dtype = trained_dtype(dtype_)});
      return checked_sum({lora.weights_bytes, lora.gradient_bytes, lora.optimizer_bytes},
                         "the LoRA's bytes");
    }
    const Index n = count_parameters(arch_).total;
    const Dtype trained = trained_dtype(dtype_);
    return checked_sum(
        {packed_bytes(n, trained, "the gradients' bytes"),
         checked_product({bits(trained) >= 32 ? 8 : 12, n}, "the optimizer's bytes")},
        "the training's bytes");
  }

  void add_inference(FitPoint& point) const {
    for (const KvCacheGroup& group : cache_.groups) {
      const Index tokens =
          group.window == 0 ? point.context : std::min(point.context, group.window);
      point.kv_cache_bytes = saturated_sum(
          {point.kv_cache_bytes, saturated_product({group.bytes_per_token, tokens, point.batch})});
    }
    const Index all_tokens = saturated_product({point.context, point.batch});
    const Index at_once = arch_.is_decoder
                              ? std::max(point.batch, std::min(all_tokens, options_.tokens_at_once))
                              : all_tokens;
    const Index logits = has_logits_ ? saturated_product({4, arch_.n_vocab, point.batch}) : 0;
    point.working_bytes = saturated_sum({saturated_product({bytes_per_token_, at_once}), logits});
  }

  const Architecture& arch_;
  const FitOptions& options_;
  FitPurpose purpose_;
  KvCacheCost cache_;
  bool has_logits_;
  Dtype dtype_ = Dtype::bf16;
  std::vector<std::string> dtype_notes_;
  Index bytes_per_token_ = 0;
  Index bytes_per_pair_ = 0;  // of a query and a key, in training
  Index trained_bytes_ = 0;
};

// The largest value up to `most` that `holds`, which holds below whatever it holds at; 0 if none
// does.
Index largest(Index most, const std::function<bool(Index)>& holds) {
  Index below = 0;
  Index above = most + 1;
  while (above - below > 1) {
    const Index middle = below + (above - below) / 2;
    (holds(middle) ? below : above) = middle;
  }
  return below;
}

// Positions beyond a learned table do not exist.
Index longest_possible(const Architecture& arch) {
  const bool is_learned =
      std::any_of(arch.tensors.begin(), arch.tensors.end(),
                  [](const TensorSpec& spec) { return spec.role == Role::position_embedding; });
  return is_learned ? std::max<Index>(1, arch.context) : max_tokens;
}

std::optional<Dtype> narrower_that_fits(const Architecture& arch, const Memory& memory,
                                        Index weights_bytes) {
  // Trained weights have gradients and AdamW's state of at least 16 bits beside them.
  if (memory.purpose() == FitPurpose::training) return std::nullopt;
  for (const Dtype narrower : {Dtype::bf16, Dtype::f8_e4m3, Dtype::f4}) {
    const Index bytes = weight_bytes(arch, narrower);
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

void check_options(const FitOptions& options) {
  check_range("fit: context", options.context, 0);
  check_range("fit: batch", options.batch, 1);
  check_range("fit: tokens_at_once", options.tokens_at_once, 1);
}

}  // namespace

FitPoint memory_needed(const Architecture& arch, const FitOptions& options) {
  check_options(options);
  const Memory memory(arch, options);
  return memory.at(memory.asked_context(), options.batch, memory.weights_bytes());
}

Fit fit(const Architecture& arch, const FitOptions& options) {
  if (options.bytes < 1) {
    throw_argument_error("fit: the memory is " + std::to_string(options.bytes) +
                         " bytes, but must be at least 1");
  }
  check_options(options);
  const Memory memory(arch, options);
  Fit fit;
  fit.purpose = memory.purpose();
  fit.available_bytes = options.bytes;
  fit.weights_dtype = memory.dtype();
  fit.notes = arch.assumptions;
  fit.weights_bytes = memory.weights_bytes();
  if (!options.stored_weights_bytes) {
    fit.notes.insert(fit.notes.end(), memory.dtype_notes().begin(), memory.dtype_notes().end());
  }
  const Index asked = memory.asked_context();
  fit.request = memory.at(asked, options.batch, fit.weights_bytes);
  fit.request_missing_bytes = std::max<Index>(0, fit.request.total_bytes - options.bytes);
  const FitPoint least = memory.at(1, 1, fit.weights_bytes);
  if (least.total_bytes > options.bytes) {
    fit.missing_bytes = least.total_bytes - options.bytes;
    fit.dtype_that_fits = narrower_that_fits(arch, memory, fit.weights_bytes);
    return fit;
  }
  const Index context = largest(longest_possible(arch), [&](Index value) {
    return memory.holds(value, options.batch, fit.weights_bytes);
  });
  if (context > 0) fit.longest_context = memory.at(context, options.batch, fit.weights_bytes);
  const Index batch = largest(
      max_tokens, [&](Index value) { return memory.holds(asked, value, fit.weights_bytes); });
  if (batch > 0) fit.largest_batch = memory.at(asked, batch, fit.weights_bytes);
  note_context(arch, fit, fit.notes);
  return fit;
}

std::string_view to_string(FitPurpose purpose) {
  switch (purpose) {
    case FitPurpose::inference:
      return "inference";
    case FitPurpose::training:
      return "training";
    case FitPurpose::lora_training:
      return "LoRA training";
  }
  return "";
}

}  // namespace eckart
