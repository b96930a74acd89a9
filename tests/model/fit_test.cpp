#include "eckart/model/fit.h"

#include "eckart/core/errors.h"
#include "eckart/model/count.h"

#include <algorithm>

#include "tests/model/golden_configs.h"
#include "tests/model/tiny_configs.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::golden;
using testing::golden_configs;
using testing::GoldenConfig;
using testing::read_json;
using testing::thrown_by;
using testing::tiny_bert;
using testing::tiny_llama;

// tiny_llama in BF16: weights 1744, cache 32 a token, 32 live elements or 64 bytes a token that is
// computed, logits 40 a sequence. One token at once: 1848 + 32 a token of one sequence.
Fit tiny_fit(Index bytes, Index context = 4, Index batch = 1) {
  return fit(read_json(tiny_llama),
             {.bytes = bytes, .context = context, .batch = batch, .tokens_at_once = 1});
}

TEST(Fit, TheLongestContextOfATinyModelByHand) {
  for (const Index spare : {0, 31}) {
    const Fit found = tiny_fit(1848 + 32 * 10 + spare);
    ASSERT_TRUE(found.longest_context.has_value());
    EXPECT_EQ(found.longest_context->context, 10);
    EXPECT_EQ(found.longest_context->batch, 1);
    EXPECT_EQ(found.longest_context->weights_bytes, 1744);
    EXPECT_EQ(found.longest_context->kv_cache_bytes, 320);
    EXPECT_EQ(found.longest_context->working_bytes, 104);
    EXPECT_EQ(found.longest_context->total_bytes, 2168);
    EXPECT_EQ(found.missing_bytes, 0);
  }
  EXPECT_EQ(tiny_fit(1848 + 32 * 10 + 32).longest_context->context, 11);
}

TEST(Fit, TheLargestBatchOfATinyModelByHand) {
  // At 4 tokens a sequence takes 128 of cache, 64 and 40.
  EXPECT_EQ(tiny_fit(1744 + 232 * 3).largest_batch->batch, 3);
  EXPECT_EQ(tiny_fit(1744 + 232 * 3 - 1).largest_batch->batch, 2);
  EXPECT_EQ(tiny_fit(1744 + 232 * 3).largest_batch->context, 4);
  EXPECT_FALSE(tiny_fit(1744 + 231).largest_batch.has_value());
  EXPECT_TRUE(tiny_fit(1744 + 231).longest_context.has_value());
}

TEST(Fit, TheContextAtABatchMayBeNone) {
  const Fit found = tiny_fit(1848 + 32, 4, 2);
  EXPECT_FALSE(found.longest_context.has_value());
  EXPECT_EQ(found.missing_bytes, 0);
}

TEST(Fit, WeightsThatDoNotFitSayHowMuchIsMissingAndWhatWouldFit) {
  const Fit found = tiny_fit(1000);
  EXPECT_EQ(found.available_bytes, 1000);
  EXPECT_EQ(found.weights_bytes, 1744);
  EXPECT_EQ(found.missing_bytes, 880);
  EXPECT_EQ(found.dtype_that_fits, Dtype::f4);  // F8 takes 1072 and 136, F4 736
  EXPECT_FALSE(found.longest_context.has_value());
  EXPECT_FALSE(found.largest_batch.has_value());
  EXPECT_EQ(tiny_fit(1208).dtype_that_fits, Dtype::f8_e4m3);
  EXPECT_EQ(tiny_fit(500).dtype_that_fits, std::nullopt);
}

TEST(Fit, WeightsAsTheirFileStoresThemReplaceTheCountedOnes) {
  const Fit found =
      fit(read_json(tiny_llama),
          {.bytes = 1848 + 32 * 10, .stored_weights_bytes = 1744 - 64, .tokens_at_once = 1});
  EXPECT_EQ(found.weights_bytes, 1680);
  EXPECT_EQ(found.longest_context->context, 12);
  EXPECT_TRUE(found.notes.empty());
}

TEST(Fit, AQuantizedConfigIsNoted) {
  const Architecture arch = read_json(testing::with(
      tiny_llama, R"("dtype": "bfloat16", "quantization_config": {"quant_method": "fp8"})"));
  EXPECT_EQ(fit(arch, {.bytes = 100'000, .tokens_at_once = 1}).notes.front(),
            "the config names the quantization fp8: the weights are counted without it, the file "
            "is smaller");
}

// The property that defines the answer: it fits, and one more does not.
TEST(Fit, OneMoreTokenOrSequenceDoesNotFitInAnyModel) {
  const Index bytes = 80'000'000'000;
  for (const GoldenConfig& config : golden_configs()) {
    const Architecture arch = read_json(config.config);
    const auto total = [&](Index context, Index batch) {
      const Fit at = fit(arch, {.bytes = Index{1} << 60, .context = context, .batch = batch});
      EXPECT_TRUE(at.largest_batch.has_value());
      const Index cache =
          count_kv_cache(arch, {.context = context, .batch = batch}).bytes_at_context;
      const Index tokens = arch.is_decoder ? std::max(batch, std::min<Index>(context * batch, 512))
                                           : context * batch;
      const bool has_logits = std::any_of(
          arch.tensors.begin(), arch.tensors.end(),
          [](const TensorSpec& spec) { return spec.role == Role::w_unembed && !spec.is_extra; });
      return count(arch, {.context = 1}).weights.bytes + cache +
             bits(activation_dtype(arch)) / 8 * live_elements_per_token(arch) * tokens +
             (has_logits ? 4 * arch.n_vocab * batch : 0);
    };
    const Fit found = fit(arch, {.bytes = bytes, .context = 1000, .batch = 2});
    // Not where windows or a table of positions end it.
    const Index longest = found.longest_context ? found.longest_context->context : 0;
    if (longest > 0 && longest < Index{1} << 40 && longest != arch.context) {
      const Index context = found.longest_context->context;
      EXPECT_EQ(found.longest_context->total_bytes, total(context, 2)) << config.name;
      EXPECT_LE(total(context, 2), bytes) << config.name;
      EXPECT_GT(total(context + 1, 2), bytes) << config.name;
    }
    if (found.largest_batch) {
      const Index batch = found.largest_batch->batch;
      EXPECT_LE(total(1000, batch), bytes) << config.name;
      EXPECT_GT(total(1000, batch + 1), bytes) << config.name;
    }
  }
}

TEST(Fit, AContextBeyondTheModelsOwnIsNoted) {
  const Fit found = tiny_fit(1848 + 32 * 40);
  EXPECT_EQ(found.notes.back(), "the memory holds 40 tokens but the model was made for 32");
  EXPECT_EQ(tiny_fit(1848 + 32 * 32).notes.size(), 1U);  // that the dtype was assumed
}

TEST(Fit, WithWindowsInEveryLayerAnyContextFits) {
  const Fit found = fit(golden("Mistral-7B-v0.1"), {.bytes = 24'000'000'000});
  ASSERT_TRUE(found.longest_context.has_value());
  EXPECT_EQ(found.longest_context->context, Index{1} << 40);
  EXPECT_EQ(found.longest_context->kv_cache_bytes, 131'072 * 4096);
  EXPECT_EQ(found.notes.back(),
            "the memory holds any context, here up to 2^40 tokens, but the model was made for "
            "131072");
}

TEST(Fit, AnEncoderComputesItsWholeInputAtOnce) {
  const Architecture arch = read_json(tiny_bert);
  const Index weights = count(arch).weights.bytes;
  const Index a_token = 2 * live_elements_per_token(arch);
  const Fit found = fit(arch, {.bytes = weights + 5 * a_token, .context = 2});
  EXPECT_EQ(found.longest_context->context, 5);
  EXPECT_EQ(found.longest_context->kv_cache_bytes, 0);
  EXPECT_EQ(found.largest_batch->batch, 2);
}

TEST(Fit, AContextEndsWithTheLearnedPositions) {
  const Fit found = fit(read_json(tiny_bert), {.bytes = 1'000'000'000});
  EXPECT_EQ(found.longest_context->context, 8);
  EXPECT_GT(found.largest_batch->batch, 1000);
}

TEST(Fit, TrainingTakesWhatItsCountSays) {
  for (const std::string& json : {tiny_llama, tiny_bert}) {
    const Architecture arch = read_json(json);
    for (const Index context : {1, 3, 8}) {
      const Count counted = count(arch, {.context = context, .batch = 5, .train = true});
      const FitPoint point = memory_needed(arch, {.context = context, .batch = 5, .train = true});
      EXPECT_EQ(point.total_bytes, counted.training->total_bytes);
      EXPECT_EQ(point.working_bytes, counted.activations.training_bytes);
      EXPECT_EQ(point.kv_cache_bytes, 0);
    }
  }
}

TEST(Fit, ALoraTakesItsFactorsAndTheActivationsBesideTheWeights) {
  const Architecture arch = read_json(tiny_llama);
  const Count counted = count(arch, {.context = 4, .batch = 2, .lora_rank = 2});
  const LoraCount& lora = *counted.lora;
  const FitPoint point = memory_needed(arch, {.context = 4, .batch = 2, .lora_rank = 2});
  EXPECT_EQ(point.weights_bytes, 1744);
  EXPECT_EQ(point.trained_bytes, lora.weights_bytes + lora.gradient_bytes + lora.optimizer_bytes);
  EXPECT_EQ(point.total_bytes, 1744 + point.trained_bytes + counted.activations.training_bytes);
  const FitPoint one =
      memory_needed(arch, {.context = 4, .batch = 2, .lora_rank = 2, .lora_targets = {"w_q"}});
  EXPECT_LT(one.trained_bytes, point.trained_bytes);
}

TEST(Fit, OneMoreTokenOfTrainingDoesNotFit) {
  const Architecture arch = read_json(tiny_llama);
  for (const Index rank : {0, 2}) {
    FitOptions options = {.bytes = 100'000, .context = 4, .train = true, .lora_rank = rank};
    const Fit found = fit(arch, options);
    EXPECT_EQ(found.purpose, rank == 0 ? FitPurpose::training : FitPurpose::lora_training);
    options.context = found.longest_context->context;
    EXPECT_EQ(memory_needed(arch, options).total_bytes, found.longest_context->total_bytes);
    EXPECT_LE(found.longest_context->total_bytes, 100'000);
    ++options.context;
    EXPECT_GT(memory_needed(arch, options).total_bytes, 100'000);
  }
  const Fit small = fit(arch, {.bytes = 2000, .train = true});
  EXPECT_GT(small.missing_bytes, 0);
  EXPECT_EQ(small.dtype_that_fits, std::nullopt);
}

TEST(Fit, TheRequestIsAnsweredItself) {
  // 1744 of weights, 4 x 32 of cache, 64 for one token at once, 40 of logits.
  EXPECT_EQ(tiny_fit(1976).request.total_bytes, 1976);
  EXPECT_EQ(tiny_fit(1976).request_missing_bytes, 0);
  EXPECT_EQ(tiny_fit(1900).request_missing_bytes, 76);
  EXPECT_EQ(tiny_fit(1000).request_missing_bytes, 976);
}

TEST(Fit, OptionsOutOfRangeAreErrors) {
  const Architecture arch = read_json(tiny_llama);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { fit(arch, {}); }),
            "fit: the memory is 0 bytes, but must be at least 1");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { fit(arch, {.bytes = 1, .batch = 0}); }),
            "fit: batch is 0, but must be from 1 to 2^40");
}

}  // namespace
}  // namespace eckart
