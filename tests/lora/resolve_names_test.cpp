// The names of a base for an adapter's modules.
#include "eckart/core/errors.h"
#include "eckart/lora/adapter.h"

#include <string>
#include <vector>

#include "tests/lora/adapter_files.h"
#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

TEST(ResolveNames, UndoesUnderscoresWithTheBasesNames) {
  const ScratchFolder folder;
  HandTensors tensors = kohya_pair("lora_te1_model_layers_0_self_attn_q_proj");
  tensors.merge(kohya_pair("lora_te1_model_layers_0_self_attn_x_proj"));
  save_floats(folder / "x.safetensors", tensors);
  Adapter adapter = open_adapter(folder / "x.safetensors");
  const auto unmatched = adapter.resolve_names(
      {"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight"});
  EXPECT_EQ(adapter.modules()[1].name, "model.layers.0.self_attn.q_proj");
  ASSERT_EQ(unmatched.size(), 1U);
  EXPECT_EQ(unmatched[0].name, "lora_te1_model_layers_0_self_attn_x_proj");
  EXPECT_EQ(unmatched[0].closest[0], "model.layers.0.self_attn.k_proj");
}

TEST(ResolveNames, FindsTheNameThatTheFilesUse) {
  const ScratchFolder folder;
  save_peft(folder.path(), peft_pair("model.layers.0.q"),
            "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q']}");
  for (const char* base : {"layers.0.q", "model.layers.0.q", "language_model.model.layers.0.q"}) {
    Adapter adapter = open_adapter(folder.path());
    EXPECT_TRUE(adapter.resolve_names({base + std::string(".weight"), "lm_head.weight"}).empty());
    EXPECT_EQ(adapter.modules()[0].name, base);
  }
}

TEST(ResolveNames, LeavesANameThatTwoEndWith) {
  const ScratchFolder folder;
  save_peft(folder.path(), peft_pair("layers.0.q"),
            "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q']}");
  Adapter adapter = open_adapter(folder.path());
  const auto unmatched =
      adapter.resolve_names({"text.layers.0.q.weight", "vision.layers.0.q.weight"});
  ASSERT_EQ(unmatched.size(), 1U);
  EXPECT_EQ(adapter.modules()[0].name, "layers.0.q");
}

TEST(ResolveNames, RefusesTwoModulesThatWouldBecomeOne) {
  // Of a model with two towers, on a base that has one of them: both end in its only name.
  const ScratchFolder folder;
  HandTensors tensors = peft_pair("text_model.encoder.q");
  tensors.merge(peft_pair("vision_model.encoder.q"));
  save_peft(folder.path(), tensors, "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q']}");
  Adapter adapter = open_adapter(folder.path());
  EXPECT_EQ(thrown_by<ArgumentError>([&] { adapter.resolve_names({"encoder.q.weight"}); }),
            "lora: text_model.encoder.q and vision_model.encoder.q of " + folder.path().string() +
                " are both encoder.q of the base, but a tensor of the base is changed by one of "
                "them\n  hint: the adapter is for a model that has both, of which this base is a "
                "part or another");
  Adapter whole = open_adapter(folder.path());
  EXPECT_TRUE(whole.resolve_names({"text_model.encoder.q.weight", "vision_model.encoder.q.weight"})
                  .empty());
}

TEST(ResolveNames, RefusesTwoSavedTensorsThatWouldBecomeOne) {
  const ScratchFolder folder;
  HandTensors tensors = peft_pair("a.q");
  for (const char* name : {"text.norm", "vision.norm"}) {
    tensors["base_model.model." + std::string(name) + ".b.weight"] = {{1}, {1}};
  }
  save_peft(folder.path(), tensors,
            "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q'], 'modules_to_save': ['b']}");
  Adapter adapter = open_adapter(folder.path());
  const std::string said = thrown_by<ArgumentError>([&] {
    adapter.resolve_names({"a.q.weight", "norm.b.weight"});
  });
  EXPECT_NE(said.find("text.norm.b.weight and vision.norm.b.weight of"), std::string::npos) << said;
}

}  // namespace
}  // namespace eckart::testing
