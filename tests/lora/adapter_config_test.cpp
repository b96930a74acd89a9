#include "eckart/lora/adapter_config.h"

#include "eckart/core/errors.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_folder.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

// JSON whose quotes may be written as `'`.
AdapterConfig config_of(std::string_view json) {
  const ScratchFolder folder;
  put(folder / "adapter_config.json", in_quotes(json));
  return read_adapter_config(folder / "adapter_config.json");
}

// What reading it throws, without the path.
std::string error_of(std::string_view json) {
  const ScratchFolder folder;
  const std::string path = (folder / "adapter_config.json").string();
  put(path, in_quotes(json));
  const std::string text = thrown_by<FormatError>([&] { read_adapter_config(path); });
  return text.starts_with(path + ": ") ? text.substr(path.size() + 2) : text;
}

TEST(AdapterConfig, HasPeftsDefaults) {
  const AdapterConfig config = config_of("{'peft_type': 'LORA'}");
  EXPECT_EQ(config.r, 8);
  EXPECT_EQ(config.lora_alpha, 8);
  EXPECT_FALSE(config.use_rslora);
  EXPECT_EQ(config.bias, "none");
}

TEST(AdapterConfig, TheFirstPatternThatFitsCounts) {
  const AdapterConfig config = config_of(
      "{'peft_type': 'LORA', 'r': 8, 'rank_pattern': {'z.*_proj': 2, 'a.q_proj': 3, 'q_proj': 4}}");
  EXPECT_EQ(rank_of(config, "model.z_q_proj"), 2);
  EXPECT_EQ(rank_of(config, "model.a.q_proj"), 3);
  EXPECT_EQ(rank_of(config, "model.b.q_proj"), 4);
  EXPECT_EQ(rank_of(config, "model.b.k_proj"), 8);
  // Behind a dot, or the whole name; never the end of a part.
  EXPECT_EQ(rank_of(config, "model.b.xq_proj"), 8);
}

TEST(AdapterConfig, DotsOfAPatternFitAnyLetter) {
  const AdapterConfig config =
      config_of("{'peft_type': 'LORA', 'alpha_pattern': {'a.b': 2.5}, 'lora_alpha': 16}");
  EXPECT_EQ(alpha_of(config, "x.aXb"), 2.5);
  EXPECT_EQ(alpha_of(config, "x.ab"), 16);
}

TEST(AdapterConfig, AnEscapedNameFitsItAlone) {
  AdapterConfig config;
  config.rank_pattern = {{escaped_pattern("a.b+(c)-d"), 3}};
  EXPECT_EQ(rank_of(config, "a.b+(c)-d"), 3);
  for (const char* other : {"x.a.b+(c)-d", "aXb+(c)-d", "a.bb(c)-d", "a.b+(c)-d.e"}) {
    EXPECT_EQ(rank_of(config, other), 8) << other;
  }
}

TEST(AdapterConfig, ScalesDivideByTheRankOrItsRoot) {
  AdapterConfig config;
  EXPECT_EQ(scale_of(config, 4, 8), 2);
  config.use_rslora = true;
  EXPECT_EQ(scale_of(config, 4, 8), 4);
}

TEST(IsTarget, TakesNamesEndingsAndExpressions) {
  const AdapterConfig list =
      config_of("{'peft_type': 'LORA', 'target_modules': ['q_proj', 'model.head']}");
  EXPECT_TRUE(is_target(list, "model.layers.0.q_proj"));
  EXPECT_TRUE(is_target(list, "model.head"));
  EXPECT_FALSE(is_target(list, "model.layers.0.xq_proj"));
  EXPECT_FALSE(is_target(list, "head"));
  const AdapterConfig regex =
      config_of("{'peft_type': 'LORA', 'target_modules': '.*layers\\\\.[0-3]\\\\.(q|v)_proj'}");
  EXPECT_TRUE(is_target(regex, "model.layers.3.v_proj"));
  EXPECT_FALSE(is_target(regex, "model.layers.4.v_proj"));
  EXPECT_FALSE(is_target(regex, "model.layers.3.v_proj.x"));
}

TEST(IsTarget, LeavesOutWhatIsExcludedOrSavedWhole) {
  const AdapterConfig config = config_of(
      "{'peft_type': 'LORA', 'target_modules': 'all-linear', 'exclude_modules': ['k_proj'], "
      "'modules_to_save': ['score']}");
  EXPECT_TRUE(is_target(config, "a.q_proj"));
  EXPECT_FALSE(is_target(config, "a.k_proj"));
  EXPECT_FALSE(is_target(config, "score"));
  EXPECT_FALSE(is_target(config, "a.score.dense"));
}

TEST(IsTarget, OfEndingsTakesTheLayersThatAreNamed) {
  const AdapterConfig config =
      config_of("{'peft_type': 'LORA', 'target_modules': ['q'], 'layers_to_transform': [1, 12]}");
  EXPECT_TRUE(is_target(config, "model.layers.12.q"));
  EXPECT_FALSE(is_target(config, "model.layers.2.q"));
  const AdapterConfig named = config_of(
      "{'peft_type': 'LORA', 'target_modules': ['q'], 'layers_to_transform': 1, "
      "'layers_pattern': 'h'}");
  EXPECT_TRUE(is_target(named, "model.h.1.q"));
  EXPECT_FALSE(is_target(named, "model.layers.1.q"));
}

TEST(AdapterConfig, RefusesOtherTypes) {
  EXPECT_EQ(
      error_of("{'peft_type': 'LOHA'}"),
      "peft_type is \"LOHA\", but Eckart reads adapters of peft_type \"LORA\"\n  hint: PEFT's "
      "convert_to_lora makes a LoRA of other adapters");
  EXPECT_EQ(error_of("{'r': 8}"),
            "peft_type is missing, but Eckart reads adapters of peft_type \"LORA\"");
}

TEST(AdapterConfig, RefusesWhatChangesTheDeltaInAWayThatIsNotComputed) {
  EXPECT_EQ(
      error_of("{'peft_type': 'LORA', 'use_qalora': true}"),
      "use_qalora is set, but Eckart does not compute it: QALoRA pools the input before lora_A");
  EXPECT_EQ(
      error_of("{'peft_type': 'LORA', 'loftq_config': {'loftq_bits': 4}}"),
      "loftq_config is set, but Eckart does not compute it: LoftQ's factors belong to a base that "
      "was quantized with them");
  EXPECT_EQ(
      error_of("{'peft_type': 'LORA', 'use_future_thing': 3}"),
      "the field use_future_thing is 3, but Eckart does not know what it does to the adapter\n"
      "  hint: remove it when it changes nothing of what the adapter adds to its base");
}

TEST(AdapterConfig, CarriesHarmlessFieldsAlong) {
  const AdapterConfig config = config_of(
      "{'peft_type': 'LORA', 'future': null, 'peft_version': '1.0', 'auto_mapping': {'a': [1, "
      "2]}}");
  const std::string json = to_json(config);
  EXPECT_NE(json.find("\"future\": null"), std::string::npos);
  EXPECT_NE(json.find("\"peft_version\": \"1.0\""), std::string::npos);
  EXPECT_NE(json.find("\"auto_mapping\": {\n    \"a\": [\n      1,\n      2\n    ]\n  }"),
            std::string::npos);
}

TEST(AdapterConfig, RefusesRanksThatAreNone) {
  EXPECT_EQ(error_of("{'peft_type': 'LORA', 'r': 0}"),
            "r is 0, but a rank is a whole number from 1 to 2^30");
  EXPECT_EQ(error_of("{'peft_type': 'LORA', 'rank_pattern': {'q': 0}}"),
            "rank_pattern: of \"q\" it is 0, but a rank is a whole number from 1 to 2^30");
}

// PEFT has 8 for one that is missing, and can't load these.
TEST(AdapterConfig, RefusesNullForANumberAndAnUnknownBias) {
  EXPECT_EQ(config_of("{'peft_type': 'LORA'}").lora_alpha, 8);
  EXPECT_EQ(error_of("{'peft_type': 'LORA', 'lora_alpha': null}"),
            "lora_alpha is null, but it must be a number\n  hint: set it to what the adapter was "
            "trained with");
  EXPECT_EQ(
      error_of("{'peft_type': 'LORA', 'r': null}"),
      "r is null, but it must be a number\n  hint: set it to what the adapter was trained with");
  EXPECT_EQ(error_of("{'peft_type': 'LORA', 'bias': 'foo'}"),
            "bias is \"foo\", but must be \"none\", \"all\" or \"lora_only\"");
  EXPECT_EQ(config_of("{'peft_type': 'LORA', 'bias': 'lora_only'}").bias, "lora_only");
}

TEST(AdapterConfig, RefusesPatternsThatAreNoExpressions) {
  EXPECT_EQ(
      error_of("{'peft_type': 'LORA', 'rank_pattern': {'(q': 2}}"),
      "rank_pattern: \"(q\" is not a regular expression: missing closing parenthesis at byte 2");
  EXPECT_EQ(
      error_of("{'peft_type': 'LORA', 'target_modules': '*q'}"),
      "target_modules: \"*q\" is not a regular expression: quantifier does not follow a repeatable "
      "item at byte 0");
}

TEST(AdapterConfig, EndsAnExpressionThatWouldTakeForEver) {
  AdapterConfig config;
  config.target_pattern = "((a+)+)+[bc]";
  EXPECT_EQ(thrown_by<ArgumentError>([&] { is_target(config, std::string(60, 'a')); }),
            "\"((a+)+)+[bc]\" can't be held against \"" + std::string(60, 'a') +
                "\": match limit exceeded");
}

TEST(AdapterConfig, IsWrittenAsPeftWritesIt) {
  AdapterConfig config;
  config.r = 4;
  config.lora_alpha = 4;
  config.target_modules = {"a.q", "a.k"};
  config.rank_pattern = {{"^z", 2}, {"^a", 3}};
  config.alpha_pattern = {{"^z", 2.5}};
  config.base_model = "org/model";
  config.task_type = "CAUSAL_LM";
  EXPECT_EQ(to_json(config), R"({
  "alpha_pattern": {
    "^z": 2.5
  },
  "base_model_name_or_path": "org/model",
  "bias": "none",
  "exclude_modules": null,
  "fan_in_fan_out": false,
  "inference_mode": true,
  "init_lora_weights": true,
  "layers_pattern": null,
  "layers_to_transform": null,
  "lora_alpha": 4,
  "lora_bias": false,
  "lora_dropout": 0.0,
  "modules_to_save": null,
  "peft_type": "LORA",
  "r": 4,
  "rank_pattern": {
    "^z": 2,
    "^a": 3
  },
  "target_modules": [
    "a.q",
    "a.k"
  ],
  "target_parameters": null,
  "task_type": "CAUSAL_LM",
  "use_dora": false,
  "use_rslora": false
}
)");
}

TEST(AdapterConfig, SaysWhetherItsExpertsAreThoseOfAnOldPeft) {
  const auto is_old = [](const std::string& version) {
    return has_old_experts(config_of("{'peft_type': 'LORA', 'peft_version': " + version + "}"));
  };
  EXPECT_EQ(is_old("'0.18.1'"), true);
  EXPECT_EQ(is_old("'0.19.0'"), true);
  EXPECT_EQ(is_old("'0.19.1'"), false);
  EXPECT_EQ(is_old("'0.19.2.dev0'"), false);
  EXPECT_EQ(is_old("'1.0'"), false);
  EXPECT_EQ(is_old("'unknown'"), std::nullopt);
  EXPECT_EQ(is_old("null"), std::nullopt);
  AdapterConfig config = config_of("{'peft_type': 'LORA', 'peft_version': '0.18.1'}");
  set_new_experts(config);
  EXPECT_EQ(has_old_experts(config), false);
}

}  // namespace
}  // namespace eckart::testing
