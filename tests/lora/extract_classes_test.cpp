// What PEFT and the classes of transformers make of modules, beyond what files say.
#include "eckart/lora/extract.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/lora/model_pair.h"

namespace eckart {
namespace {

using testing::delta_of;
using testing::entry_of;
using testing::float_bound;
using testing::is_near;
using testing::low_rank_change;
using testing::ModelPair;
using testing::refusal;
using testing::whole_numbers;
using Names = std::vector<std::string>;

std::string config_of(const std::string& model_type, const std::string& model_class,
                      const std::string& more = "") {
  return R"({"model_type": ")" + model_type + R"(", "architectures": [")" + model_class + R"("])" +
         more + "}";
}

std::string fate(const ExtractReport& report, const std::string& name) {
  const ExtractedTensor& entry = entry_of(report, name);
  return std::string(to_string(entry.fate)) + ": " + entry.reason;
}

Names saved_tensors(const ModelPair& pair) {
  Names names;
  const Adapter adapter = pair.adapter();
  for (const SavedTensor& saved : adapter.saved()) names.push_back(saved.name);
  return names;
}

TEST(ExtractClasses, TheHeadOfAClassifierIsSavedWholeChangedOrNot) {
  ModelPair pair;
  pair.config_json = config_of("unknown", "UnknownForSequenceClassification");
  pair.add("m.q.weight", {8, 8}).add("classifier.dense.weight", {8, 8});
  pair.add("classifier.dense.bias", {8}).add("classifier.out_proj.weight", {2, 8});
  pair.add("score.weight", {2, 8});
  pair.change("m.q.weight", whole_numbers({8, 8}, 1));
  pair.change("classifier.dense.weight", whole_numbers({8, 8}, 2));
  const ExtractReport report = pair.extract({.ranks = {.rank = 8}});
  EXPECT_EQ(fate(report, "classifier.dense.weight"),
            "full: PEFT saves it whole with task_type SEQ_CLS");
  EXPECT_EQ(fate(report, "score.weight"), "full: PEFT saves it whole with task_type SEQ_CLS");
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().task_type, "SEQ_CLS");
  EXPECT_EQ(adapter.config().modules_to_save, (Names{"classifier", "score"}));
  EXPECT_EQ(adapter.config().target_modules, Names{"m.q"});
  EXPECT_EQ(saved_tensors(pair), (Names{"classifier.dense.bias", "classifier.dense.weight",
                                        "classifier.out_proj.weight", "score.weight"}));
}

TEST(ExtractClasses, WithoutAllOfTheHeadNoTaskIsNamed) {
  ModelPair pair;
  pair.config_json = config_of("unknown", "UnknownForTokenClassification");
  pair.add("m.q.weight", {8, 8}).add("classifier.weight", {8, 8});
  pair.change("m.q.weight", whole_numbers({8, 8}, 1));
  pair.change("classifier.weight", whole_numbers({8, 8}, 2));
  const ExtractReport report =
      pair.extract({.rules = {.exclude = {"classifier"}}, .ranks = {.rank = 8}});
  EXPECT_EQ(fate(report, "classifier.weight"), "skipped: excluded");
  EXPECT_EQ(pair.adapter().config().task_type, "");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0],
            "with task_type TOKEN_CLS PEFT would load the head, of which parts are left out: no "
            "task_type is written");
}

TEST(ExtractClasses, TablesAreKnownByTheirNames) {
  const Names names = {"model.decoder.embed_positions", "shared",
                       "encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
                       "deberta.encoder.rel_embeddings"};
  for (const TableRule rule : {TableRule::save, TableRule::lora}) {
    ModelPair pair;
    pair.add("a.embed_proj.weight", {8, 8}).change("a.embed_proj.weight", whole_numbers({8, 8}, 9));
    for (const std::string& name : names) {
      pair.add(name + ".weight", {8, 4}).change(name + ".weight", whole_numbers({8, 4}, 1));
    }
    const ExtractReport report = pair.extract({.rules = {.tables = rule}, .ranks = {.rank = 8}});
    for (const std::string& name : names) {
      EXPECT_EQ(fate(report, name + ".weight"),
                rule == TableRule::save
                    ? "full: embeddings are saved whole"
                    : "full: a table whose class may be none that a LoRA fits, saved whole");
    }
    EXPECT_EQ(pair.adapter().config().target_modules, Names{"a.embed_proj"});
  }
}

TEST(ExtractClasses, ATableOfEncoderAndDecoderIsSavedForEach) {
  ModelPair pair;
  pair.config_json = config_of("t5", "T5ForConditionalGeneration");
  pair.add("shared.weight", {8, 4}).add("encoder.q.weight", {8, 8}).add("decoder.q.weight", {8, 8});
  pair.change("shared.weight", whole_numbers({8, 4}, 1));
  pair.change("encoder.q.weight", whole_numbers({8, 8}, 2));
  pair.extract({.ranks = {.rank = 8}});
  EXPECT_EQ(pair.adapter().config().modules_to_save,
            (Names{"decoder.embed_tokens", "encoder.embed_tokens", "lm_head", "shared"}));
  EXPECT_EQ(saved_tensors(pair).size(), 4u);
}

TEST(ExtractClasses, ATiedHeadOfMaskedTokensIsSavedWithItsBias) {
  for (const char* changed : {"bert.embeddings.word_embeddings.weight", "cls.predictions.bias"}) {
    ModelPair pair;
    pair.config_json = config_of("unknown", "UnknownForMaskedLM");
    pair.add("bert.embeddings.word_embeddings.weight", {16, 8}).add("cls.predictions.bias", {16});
    pair.add("cls.predictions.transform.dense.weight", {8, 8}).add("bert.q.weight", {8, 8});
    const bool is_bias = pair.base.at(changed).shape().rank() == 1;
    pair.change(changed, is_bias ? whole_numbers({16}, 3) : whole_numbers({16, 8}, 3));
    pair.change("bert.q.weight", whole_numbers({8, 8}, 2));
    const ExtractReport report = pair.extract({.ranks = {.rank = 8}});
    EXPECT_EQ(entry_of(report, "cls.predictions.bias").fate, ExtractFate::full);
    EXPECT_EQ(saved_tensors(pair),
              (Names{"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.bias",
                     "cls.predictions.decoder.weight"}));
    EXPECT_EQ(pair.adapter().config().modules_to_save,
              (Names{"bert.embeddings.word_embeddings", "cls.predictions.decoder"}));
  }
}

TEST(ExtractClasses, RenamedModulesGetTheNamesOfTheClass) {
  ModelPair pair;
  pair.config_json = config_of("vit", "ViTForImageClassification");
  const std::string layer = "vit.encoder.layer.0.";
  pair.add(layer + "attention.attention.query.weight", {8, 8});
  pair.add(layer + "attention.output.dense.weight", {8, 8});
  pair.add(layer + "intermediate.dense.weight", {12, 8})
      .add(layer + "output.dense.weight", {8, 12});
  for (const auto& [name, values] : pair.base) pair.change(name, whole_numbers(values.shape(), 1));
  const Tensor<float> change = whole_numbers({8, 12}, 1);
  pair.extract({.ranks = {.rank = 12}});
  const Adapter adapter = pair.adapter();
  EXPECT_EQ(adapter.config().target_modules,
            (Names{"vit.layers.0.attention.o_proj", "vit.layers.0.attention.q_proj",
                   "vit.layers.0.mlp.fc1", "vit.layers.0.mlp.fc2"}));
  EXPECT_TRUE(is_near(delta_of(adapter, "vit.layers.0.mlp.fc2"), change, float_bound));
}

TEST(ExtractClasses, WhatIsNoPlainLayerIsSavedWhole) {
  ModelPair pair;
  const std::string mixer = "backbone.layers.0.mixer.", mlp = "model.layers.0.mlp.";
  pair.add(mixer + "A_log", {8, 4}).add(mixer + "D", {8}).add(mixer + "conv1d.weight", {8, 1, 4});
  pair.add(mixer + "conv1d.bias", {8}).add(mixer + "in_proj.weight", {16, 8});
  pair.add(mixer + "out_proj.weight", {8, 8}).add(mixer + "dt_proj.weight", {8, 2});
  pair.add(mlp + "experts.gate_up_proj", {2, 8, 8}).add(mlp + "router.weight", {2, 8});
  pair.add("audio.pos_conv.weight", {8, 1, 3}).add("model.encoder.conv2.weight", {8, 8, 3});
  for (const auto& [name, values] : pair.base) pair.change(name, whole_numbers(values.shape(), 1));
  const ExtractReport report = pair.extract({.ranks = {.rank = 8}});
  EXPECT_EQ(pair.adapter().config().target_modules, Names{mixer + "in_proj"});
  for (const char* name : {"conv1d", "out_proj", "dt_proj"}) {
    EXPECT_EQ(fate(report, mixer + name + ".weight"),
              "full: a state-space layer uses it without its module, so that a LoRA would not be "
              "run");
  }
  EXPECT_EQ(fate(report, mixer + "conv1d.bias"), "full: saved with its module");
  EXPECT_EQ(fate(report, mlp + "router.weight"),
            "full: a router, whose class PEFT has no LoRA for");
  EXPECT_EQ(fate(report, "audio.pos_conv.weight"),
            "full: a convolution of groups, whose ranks PEFT does not let be chosen");
  EXPECT_EQ(fate(report, "model.encoder.conv2.weight"),
            "full: a convolution whose stride its model asks for, which a LoRA does not have");
}

TEST(ExtractClasses, AMatrixOfNoModuleIsSkipped) {
  ModelPair pair;
  pair.add("weight", {8, 8}).add("a.weight", {8, 8});
  for (const char* name : {"weight", "a.weight"}) pair.change(name, whole_numbers({8, 8}, 1));
  const ExtractReport report = pair.extract({.ranks = {.rank = 8}});
  EXPECT_EQ(fate(report, "weight"),
            "skipped: a matrix of the model itself and of none of its modules, which PEFT has no "
            "LoRA for");
}

// One matrix, a large one, says nothing of the others, nor do rows that are new.
TEST(ExtractClasses, ModelsAreRelatedWhereMostMatricesAre) {
  const auto negate = [](ModelPair& pair, const char* name) {
    Tensor<float>& values = pair.tuned.at(name);
    for (Index i = 0; i < values.count(); ++i) values.data()[i] *= -1;
  };
  ModelPair other;
  other.add("big.weight", {64, 64}).add("a.weight", {8, 8}).add("b.weight", {8, 8});
  negate(other, "a.weight");
  negate(other, "b.weight");
  EXPECT_NE(refusal(other).find("half of the matrices have moved by 2 times their norm or more"),
            std::string::npos);
  ModelPair tuned;
  tuned.add("big.weight", {64, 64}).add("a.weight", {8, 8}).add("b.weight", {8, 8});
  negate(tuned, "big.weight");
  EXPECT_EQ(tuned.extract({.ranks = {.rank = 1}}).rank, 1);
  ModelPair grown;
  grown.add("model.embed_tokens.weight", {4, 8}).add("a.weight", {8, 8});
  grown.change("a.weight", whole_numbers({8, 8}, 1));
  Tensor<float> table({64, 8});
  for (Index i = 0; i < 512; ++i) table.data()[i] = 4096;
  std::copy_n(grown.base.at("model.embed_tokens.weight").data(), 32, table.data());
  grown.tuned.at("model.embed_tokens.weight") = table;
  EXPECT_EQ(grown.extract({.ranks = {.rank = 1}}).rank, 1);
}

}  // namespace
}  // namespace eckart
