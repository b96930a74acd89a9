#include "eckart/model/forward_settings.h"

#include "eckart/core/errors.h"
#include "eckart/model/rotary_settings.h"

#include <cmath>
#include <string>
#include <vector>

#include "tests/model/tiny_configs.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::thrown_by;
using testing::tiny_bert;
using testing::tiny_llama;
using testing::with;

ForwardSettings settings_of(const std::string& json) {
  const Config config = parse_config(json, "config.json");
  return read_forward_settings(config, read_architecture(config));
}

RotaryOptions rotary_of(const std::string& settings) {
  return settings_of(with(tiny_llama, settings)).rotary.value();
}

std::string refusal(const std::string& json) {
  return thrown_by<ArgumentError>([&] { settings_of(json); });
}

TEST(ForwardSettings, OfALlamaAreItsFamilys) {
  const ForwardSettings settings = settings_of(tiny_llama);
  EXPECT_TRUE(settings.is_rms_norm);
  EXPECT_EQ(settings.norm_eps, 1e-6);
  EXPECT_EQ(settings.activation, Activation::silu);
  EXPECT_TRUE(settings.is_causal);
  EXPECT_EQ(settings.scales, std::vector<double>(2, 1 / std::sqrt(2.0)));
  EXPECT_EQ(settings.context, 32);
  EXPECT_EQ(settings.rotary->base, 10'000);
  EXPECT_EQ(settings.rotary->scaling, RotaryScaling::none);
}

TEST(ForwardSettings, ReadsWhatTheConfigSays) {
  const ForwardSettings settings = settings_of(
      with(tiny_llama, R"("rms_norm_eps": 0.5, "hidden_act": "gelu_new", "eos_token_id": [2, 5])"));
  EXPECT_EQ(settings.norm_eps, 0.5);
  EXPECT_EQ(settings.activation, Activation::gelu_tanh);
  EXPECT_EQ(settings.end_ids, (std::vector<Index>{2, 5}));
  EXPECT_EQ(settings_of(with(tiny_llama, R"("eos_token_id": 3)")).end_ids, std::vector<Index>{3});
}

TEST(ForwardSettings, OfAnEncoderStandBehindItsParts) {
  const ForwardSettings settings = settings_of(tiny_bert);
  EXPECT_EQ(settings.norm_placement, NormPlacement::after);
  EXPECT_FALSE(settings.is_rms_norm);
  EXPECT_FALSE(settings.is_causal);
  EXPECT_FALSE(settings.rotary);
  EXPECT_EQ(settings.norm_eps, 1e-12);
  EXPECT_EQ(settings.position_offset, 0);
  EXPECT_TRUE(settings_of(with(tiny_bert, R"("is_decoder": true)")).is_causal);
}

TEST(ForwardSettings, ScaleScoresOfGpt2AsItsSwitchesSay) {
  const std::string gpt2 = R"({"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 3,
      "n_head": 2, "n_positions": 16)";
  EXPECT_EQ(settings_of(gpt2 + "}").scales, std::vector<double>(3, 0.5));
  EXPECT_EQ(settings_of(gpt2 + R"(, "scale_attn_weights": false})").scales,
            std::vector<double>(3, 1));
  EXPECT_EQ(settings_of(gpt2 + R"(, "scale_attn_by_inverse_layer_idx": true})").scales,
            (std::vector<double>{0.5, 0.25, 0.5 / 3}));
}

TEST(ForwardSettings, TakeGemmasGeluForItsApproximation) {
  const std::string gemma = R"({"model_type": "gemma", "vocab_size": 9, "hidden_size": 16,
      "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
      "intermediate_size": 6)";
  for (const char* act :
       {"", R"(, "hidden_act": "gelu")", R"(, "hidden_activation": "gelu_pytorch_tanh")"}) {
    EXPECT_EQ(settings_of(gemma + act + "}").activation, Activation::gelu_tanh) << act;
  }
  EXPECT_EQ(settings_of(gemma + "}").embedding_scale, 4);
  EXPECT_FALSE(settings_of(gemma + R"(, "use_bidirectional_attention": true})").is_causal);
}

TEST(ForwardSettings, ReadPositionsInTheirOldAndNewPlaces) {
  for (const char* settings :
       {R"("rope_theta": 500.0, "rope_scaling": {"type": "linear", "factor": 4.0})",
        R"("rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500.0})",
        R"("rope_theta": 500.0, "rope_parameters": {"rope_type": "linear", "factor": 4})"}) {
    const RotaryOptions rotary = rotary_of(settings);
    EXPECT_EQ(rotary.base, 500) << settings;
    EXPECT_EQ(rotary.scaling, RotaryScaling::linear) << settings;
    EXPECT_EQ(rotary.factor, 4) << settings;
  }
  EXPECT_EQ(rotary_of(R"("rope_theta": 500.0, "rope_scaling": null)").scaling, RotaryScaling::none);
}

TEST(ForwardSettings, ReadTheFieldsOfEachScaling) {
  const RotaryOptions llama3 = rotary_of(
      R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.5,
         "high_freq_factor": 3.0, "original_max_position_embeddings": 16})");
  EXPECT_EQ(llama3.scaling, RotaryScaling::llama3);
  EXPECT_EQ(llama3.low_frequency_factor, 1.5);
  EXPECT_EQ(llama3.high_frequency_factor, 3);
  EXPECT_EQ(llama3.original_context, 16);
  const RotaryOptions yarn = rotary_of(
      R"("rope_scaling": {"rope_type": "yarn", "original_max_position_embeddings": 8,
         "beta_fast": 16, "mscale": 0.5, "truncate": false})");
  EXPECT_EQ(yarn.scaling, RotaryScaling::yarn);
  EXPECT_EQ(yarn.factor, 4);  // 32 / 8, where it is absent
  EXPECT_EQ(yarn.beta_fast, 16);
  EXPECT_EQ(yarn.beta_slow, 1);
  EXPECT_EQ(yarn.mscale, 0.5);
  EXPECT_FALSE(yarn.truncates);
  const RotaryOptions dynamic = rotary_of(R"("rope_scaling": {"type": "dynamic", "factor": 2})");
  EXPECT_EQ(dynamic.scaling, RotaryScaling::dynamic_ntk);
  EXPECT_EQ(dynamic.original_context, 32);
  const RotaryOptions longrope = rotary_of(
      R"("rope_scaling": {"type": "su", "short_factor": [1.5], "long_factor": [3],
         "original_max_position_embeddings": 16})");
  EXPECT_EQ(longrope.scaling, RotaryScaling::longrope);
  EXPECT_EQ(longrope.factor, 2);
  EXPECT_EQ(longrope.short_factors, std::vector<double>{1.5});
  EXPECT_EQ(longrope.long_factors, std::vector<double>{3});
}

TEST(ForwardSettings, RefuseWhatTheyDoNotKnowAndNameWhatTheyDo) {
  EXPECT_EQ(
      refusal(with(tiny_llama, R"("hidden_act": "mish")")),
      "forward: the activation of config.json is \"mish\", but that one is not known\n"
      "  hint: known are relu, gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, silu, "
      "swish, relu2, tanh and sigmoid");
  EXPECT_EQ(refusal(with(tiny_llama, R"("rope_scaling": {"type": "mrope"})")),
            "rotary: config.json scales positions by \"mrope\", but that scaling is not known\n"
            "  hint: known are default, linear, dynamic, yarn, longrope and llama3");
  EXPECT_EQ(refusal(with(tiny_bert, R"("position_embedding_type": "relative_key")")),
            "forward: config.json has positions of the kind \"relative_key\", but of bert only "
            "absolute ones are supported");
  EXPECT_EQ(refusal(with(tiny_bert, R"("add_cross_attention": true)")),
            "forward: config.json has attention to an encoder (add_cross_attention), but only bert "
            "without it is supported");
}

TEST(ForwardSettings, RefuseAScalingThatLacksAField) {
  const auto broken = [](const std::string& settings) {
    return thrown_by<FormatError>([&] { settings_of(with(tiny_llama, settings)); });
  };
  EXPECT_EQ(broken(R"("rope_scaling": {"type": "linear"})"),
            "config.json (rope_scaling): factor is missing, but the scaling linear has no meaning "
            "without it");
  EXPECT_EQ(
      broken(R"("rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [1]})"),
      "config.json (rope_scaling): short_factor has 2 entries, but the 1 pairs that are turned "
      "take one each");
}

}  // namespace
}  // namespace eckart
