#include "eckart/lora/adapter.h"

#include "eckart/linalg/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/lora/adapter_files.h"
#include "tests/matchers.h"
#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

const std::string prefix = "base_model.model.";

// Base and merged weights that PEFT computed, all elements in file order.
struct Golden {
  explicit Golden(std::string_view name)
      : adapter(open_adapter(golden_adapter(name))),
        base(open_safetensors(golden_adapter(name) / "base.safetensors")),
        merged(open_safetensors(golden_adapter(name) / "merged.safetensors")) {}

  // merged - base of a tensor, as a matrix of so many rows.
  Tensor<double> difference(const std::string& tensor, Index rows) const {
    const StoredTensor* const before = base.find(tensor);
    const StoredTensor* const after = merged.find(tensor);
    if (before == nullptr || after == nullptr) {
      ADD_FAILURE() << "no tensor " << tensor;
      return {};
    }
    const Tensor<float> w = load_floats(base, *before);
    const Tensor<float> sum = load_floats(merged, *after);
    Tensor<double> result(Shape{rows, w.count() / rows});
    for (Index i = 0; i < w.count(); ++i) {
      result.data()[i] = static_cast<double>(sum.data()[i]) - static_cast<double>(w.data()[i]);
    }
    return result;
  }

  Adapter adapter;
  SafetensorsFile base;
  SafetensorsFile merged;
};

// PEFT rounds each product, the delta and the sum to float: entries of W and delta are below 4, so
// that a few of their half units in the last place (4 eps = 5e-7) are all that may differ.
constexpr Bound float_bound = {.absolute = 4e-6};

// GPT-2's weights are stored input x output.
bool is_conv1d(std::string_view name) { return name.starts_with("transformer.h"); }

void expect_deltas_of_peft(std::string_view name) {
  const Golden golden(name);
  for (const AdapterModule& module : golden.adapter.modules()) {
    const std::string tensor = module.name + ".weight";
    const Tensor<double> delta = delta_of(golden.adapter, module);
    if (is_conv1d(module.name)) {
      EXPECT_TRUE(is_near(delta.view().transpose(), golden.difference(tensor, module.d_in).view(),
                          float_bound))
          << module.name;
    } else {
      EXPECT_TRUE(is_near(delta, golden.difference(tensor, module.d_out), float_bound))
          << module.name;
    }
  }
}

TEST(OpenAdapter, OfPeftGivesTheDeltasThatPeftMerges) {
  for (const char* name : {"default", "rslora", "patterns", "regex", "embeddings", "conv1d",
                           "modules_to_save", "convolutions", "lora_bias", "trained_biases"}) {
    SCOPED_TRACE(name);
    expect_deltas_of_peft(name);
  }
}

TEST(OpenAdapter, TakesRanksAndAlphasFromTheFirstPatternThatFits) {
  const Adapter adapter = open_adapter(golden_adapter("patterns"));
  const AdapterModule& q = module_named(adapter, "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(q.rank, 2);
  EXPECT_EQ(q.alpha, 7);
  EXPECT_EQ(q.scale, 3.5);
  const AdapterModule& down = module_named(adapter, "model.layers.0.mlp.down_proj");
  EXPECT_EQ(down.rank, 4);
  EXPECT_EQ(down.scale, 0.625);
}

TEST(OpenAdapter, OfRsloraDividesByTheRootOfTheRank) {
  const Adapter adapter = open_adapter(golden_adapter("rslora"));
  EXPECT_EQ(adapter.modules().front().scale, 8 / std::sqrt(4.0));
}

TEST(OpenAdapter, PairsTheExpertsAsPeftDoes) {
  const Golden golden("experts");
  ASSERT_EQ(golden.adapter.modules().size(), 2U);
  for (const AdapterModule& module : golden.adapter.modules()) {
    EXPECT_EQ(module.kind, AdapterKind::experts);
    EXPECT_EQ(module.rank, 2);
    ASSERT_EQ(module.n_experts, 3);
    const Tensor<double> all = golden.difference(module.name, 3 * module.d_out);
    for (Index expert = 0; expert < 3; ++expert) {
      const auto mine = all.view().slice(0, {expert * module.d_out, (expert + 1) * module.d_out});
      EXPECT_TRUE(is_near(delta_of(golden.adapter, module, expert).view(), mine, float_bound))
          << module.name << ' ' << expert;
    }
  }
}

TEST(OpenAdapter, OfDoraHasAMagnitudeForEachOutput) {
  const Golden golden("dora");
  EXPECT_TRUE(golden.adapter.config().use_dora);
  for (const AdapterModule& module : golden.adapter.modules()) {
    ASSERT_NE(module.magnitude, nullptr);
    const Tensor<float> m = load_floats(golden.adapter.file(), *module.magnitude);
    const std::string tensor = module.name + ".weight";
    const Tensor<float> w = load_floats(golden.base, *golden.base.find(tensor));
    Tensor<double> merged = delta_of(golden.adapter, module);
    for (Index i = 0; i < merged.size(0); ++i) {
      double squares = 0;
      for (Index j = 0; j < merged.size(1); ++j) {
        merged(i, j) += static_cast<double>(w(i, j));
        squares += merged(i, j) * merged(i, j);
      }
      const double factor = static_cast<double>(m(i)) / std::sqrt(squares);
      for (Index j = 0; j < merged.size(1); ++j) merged(i, j) *= factor;
    }
    EXPECT_TRUE(
        is_near(merged, load_floats(golden.merged, *golden.merged.find(tensor)), float_bound));
  }
}

TEST(OpenAdapter, OfLoraBiasScalesTheBias) {
  const Golden golden("lora_bias");
  for (const AdapterModule& module : golden.adapter.modules()) {
    ASSERT_NE(module.bias, nullptr);
    Tensor<float> bias = load_floats(golden.adapter.file(), *module.bias);
    for (Index i = 0; i < bias.count(); ++i) bias(i) *= static_cast<float>(module.scale);
    EXPECT_TRUE(is_near(std::move(bias).reshaped({module.d_out, 1}),
                        golden.difference(module.name + ".bias", module.d_out), float_bound));
  }
}

TEST(OpenAdapter, FindsWhatReplacesTheBasesTensors) {
  for (const char* name : {"modules_to_save", "trained_biases"}) {
    const Golden golden(name);
    EXPECT_FALSE(golden.adapter.saved().empty());
    for (const SavedTensor& saved : golden.adapter.saved()) {
      const StoredTensor* const merged = golden.merged.find(saved.name);
      ASSERT_NE(merged, nullptr) << saved.name;
      EXPECT_TRUE(is_near(load_floats(golden.adapter.file(), *saved.stored),
                          load_floats(golden.merged, *merged)));
    }
  }
}

TEST(OpenAdapter, LeavesCopiesOfTheBaseOutAndSaysSo) {
  const Adapter adapter = open_adapter(golden_adapter("embeddings"));
  EXPECT_EQ(rules_of(adapter.warnings()), (Lines{"warning base_copy base_model.model.lm_…",
                                                 "warning base_copy base_model.model.mod…"}));
  const AdapterModule& table = module_named(adapter, "model.embed_tokens");
  EXPECT_EQ(table.kind, AdapterKind::embedding);
  EXPECT_EQ(table.d_out, 20);
  EXPECT_EQ(table.d_in, 16);
}

TEST(OpenAdapter, OfKohyaDividesAlphaByTheRank) {
  const ScratchFolder folder;
  HandTensors tensors = kohya_pair("lora_unet_a_b");
  tensors["lora_unet_a_b.alpha"] = {{}, {0.5F}};
  save_floats(folder / "x.safetensors", tensors);
  const Adapter adapter = open_adapter(folder / "x.safetensors");
  EXPECT_EQ(adapter.naming(), AdapterNaming::kohya);
  const AdapterModule& module = adapter.modules().front();
  EXPECT_EQ(module.name, "lora_unet_a_b");
  EXPECT_TRUE(has_elements(delta_of(adapter, module).view(), {1.5, 3, 2.5, 5}));
}

TEST(OpenAdapter, TakesTheRankForAnAlphaThatIsMissingOrZero) {
  const ScratchFolder folder;
  HandTensors tensors = {{"a.lora_down.weight", {{2, 2}, {1, 0, 0, 1}}},
                         {"a.lora_up.weight", {{1, 2}, {3, 5}}},
                         {"b.lora_down.weight", {{2, 1}, {1, 1}}},
                         {"b.lora_up.weight", {{1, 2}, {3, 5}}},
                         {"b.alpha", {{1}, {0}}}};
  save_floats(folder / "x.safetensors", tensors);
  const Adapter adapter = open_adapter(folder / "x.safetensors");
  for (const AdapterModule& module : adapter.modules()) {
    EXPECT_EQ(module.alpha, 2) << module.name;
    EXPECT_EQ(module.scale, 1) << module.name;
  }
}

TEST(OpenAdapter, OfMlxTransposesAndMultipliesByTheScaleItself) {
  const ScratchFolder folder;
  save_floats(folder / "adapters.safetensors", {{"layers.0.q.lora_a", {{2, 1}, {1, 2}}},
                                                {"layers.0.q.lora_b", {{1, 3}, {1, 10, 100}}},
                                                {"embed_tokens.lora_a", {{3, 1}, {1, 2, 3}}},
                                                {"embed_tokens.lora_b", {{1, 2}, {1, 10}}}});
  put(folder / "adapter_config.json",
      R"({"fine_tune_type": "lora", "lora_parameters": {"rank": 1, "scale": 20.0}})");
  const Adapter adapter = open_adapter(folder.path());
  EXPECT_EQ(adapter.naming(), AdapterNaming::mlx);
  const AdapterModule& q = module_named(adapter, "layers.0.q");
  EXPECT_TRUE(has_elements(delta_of(adapter, q).view(), {20, 40, 200, 400, 2000, 4000}));
  const AdapterModule& table = module_named(adapter, "embed_tokens");
  EXPECT_EQ(table.kind, AdapterKind::embedding);
  EXPECT_TRUE(has_elements(delta_of(adapter, table).view(), {20, 200, 40, 400, 60, 600}));
}

TEST(OpenAdapter, OfMlxHasOneMatrixAnExpert) {
  const ScratchFolder folder;
  save_floats(folder / "adapters.safetensors",
              {{"up.lora_a", {{2, 1, 2}, {1, 2, 3, 4}}}, {"up.lora_b", {{2, 1, 1}, {1, 10}}}});
  put(folder / "adapter_config.json", R"({"lora_parameters": {"rank": 1, "scale": 1}})");
  const Adapter adapter = open_adapter(folder.path());
  const AdapterModule& up = adapter.modules().front();
  EXPECT_EQ(up.n_experts, 2);
  EXPECT_TRUE(has_elements(delta_of(adapter, up, 0).view(), {1, 2}));
  EXPECT_TRUE(has_elements(delta_of(adapter, up, 1).view(), {30, 40}));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { load_factors(adapter, up, 2); }),
            "lora: expert 2 of up is asked for, but it has 2");
}

// What opening such a PEFT folder throws, without the path.
std::string opening(const HandTensors& tensors, std::string_view config) {
  const ScratchFolder folder;
  save_peft(folder.path(), tensors, config);
  std::string text = thrown_by<FormatError>([&] { open_adapter(folder.path()); });
  const std::string path = folder.path().string() + "/adapter_model.safetensors: ";
  return text.starts_with(path) ? text.substr(path.size()) : text;
}

constexpr std::string_view rank_2 = "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q']}";

TEST(OpenAdapter, NamesWhatHasNoPartner) {
  HandTensors tensors = peft_pair("q");
  tensors.erase(prefix + "q.lora_B.weight");
  EXPECT_EQ(
      opening(tensors, rank_2),
      "tensor \"base_model.model.q.lora_A.weight\": its module has no lora_B, but a module has "
      "both factors\n  hint: the file was cut or merged by hand: save the adapter again");
}

TEST(OpenAdapter, NamesBothSpellingsOfOneModule) {
  HandTensors tensors = peft_pair("q");
  tensors["q.lora_A.weight"] = tensors[prefix + "q.lora_A.weight"];
  EXPECT_EQ(
      opening(tensors, rank_2),
      "tensor \"base_model.model.q.lora_A.weight\": it and \"q.lora_A.weight\" are two names of "
      "the same, but only one of them can hold\n  hint: the file was put together of two: save "
      "the adapter again");
  tensors = peft_pair("q");
  tensors[prefix + "lm_head.weight"] = {{2, 1}, {1, 1}};
  tensors["lm_head.weight"] = {{2, 1}, {1, 1}};
  EXPECT_EQ(
      opening(tensors,
              "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q'], 'modules_to_save': "
              "['lm_head']}"),
      "tensor \"base_model.model.lm_head.weight\": it and \"lm_head.weight\" are two names of "
      "the same, but only one of them can hold\n  hint: the file was put together of two: save "
      "the adapter again");
}

TEST(OpenAdapter, NamesTensorsThatDoNothing) {
  HandTensors tensors = peft_pair("q");
  tensors[prefix + "norm.weight"] = {{2}, {1, 1}};
  EXPECT_EQ(
      opening(tensors, rank_2),
      "tensor \"base_model.model.norm.weight\": it belongs to no module of the adapter and no "
      "entry of modules_to_save names it, but every tensor of an adapter does something");
}

TEST(OpenAdapter, RefusesAModuleThatIsSavedWholeAndHasFactors) {
  HandTensors tensors = peft_pair("q");
  tensors[prefix + "q.weight"] = {{2, 2}, {1, 1, 1, 1}};
  EXPECT_EQ(
      opening(tensors,
              "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q'], "
              "'modules_to_save': ['q']}"),
      "tensor \"base_model.model.q.weight\": it saves its module whole, and there are factors "
      "of the same module, but only one of the two can hold\n  hint: PEFT takes what is saved "
      "and passes over the factors: take one of them out, and its entry of modules_to_save or "
      "target_modules");
}

TEST(OpenAdapter, HoldsTheRankAgainstTheConfig) {
  EXPECT_EQ(
      opening(peft_pair("q"), "{'peft_type': 'LORA', 'r': 8, 'target_modules': ['q']}"),
      "tensor \"base_model.model.q.lora_A.weight\": its rank is 2, but adapter_config.json gives "
      "its module rank 8\n  hint: correct r or rank_pattern there");
}

TEST(OpenAdapter, RefusesShapesThatDoNotGoTogether) {
  HandTensors tensors = peft_pair("q");
  tensors[prefix + "q.lora_B.weight"] = {{2, 3}, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(
      opening(tensors, rank_2),
      "tensor \"base_model.model.q.lora_A.weight\": it is 2x3 and its partner "
      "\"base_model.model.q.lora_B.weight\" is 2x3, but the first's rows and the second's columns "
      "are the rank, which is one number");
}

TEST(OpenAdapter, RefusesTrainedTokens) {
  HandTensors tensors = peft_pair("q");
  tensors[prefix + "embed_tokens.token_adapter.trainable_tokens_delta"] = {{1, 2}, {1, 1}};
  EXPECT_EQ(
      opening(tensors, rank_2),
      "tensor \"base_model.model.embed_tokens.token_adapter.trainable_tokens_delta\": it holds "
      "rows "
      "of a table that were trained by themselves (trainable_token_indices), but Eckart does not "
      "read those\n  hint: merge the adapter with PEFT");
}

TEST(OpenAdapter, HoldsMagnitudesAgainstUseDora) {
  HandTensors tensors = peft_pair("q");
  EXPECT_EQ(opening(tensors, "{'peft_type': 'LORA', 'r': 2, 'use_dora': true}"),
            "tensor \"base_model.model.q.lora_A.weight\": use_dora is set, but its module has no "
            "lora_magnitude_vector");
  tensors[prefix + "q.lora_magnitude_vector"] = {{4}, {1, 1, 1, 1}};
  EXPECT_EQ(opening(tensors, rank_2),
            "tensor \"base_model.model.q.lora_magnitude_vector\": it is a magnitude of DoRA, but "
            "use_dora is not set");
}

TEST(OpenAdapter, CountsTheParametersOfWrappedModules) {
  EXPECT_EQ(
      opening(peft_pair("experts.base_layer"),
              "{'peft_type': 'LORA', 'r': 2, 'target_parameters': ['experts.up']}"),
      "tensor \"base_model.model.experts.base_layer.lora_A.weight\": its module has 0 pairs of "
      "factors, but target_parameters names 1 of its parameters");
}

TEST(OpenAdapter, RefusesAnInnerPairWithoutAnOuterOne) {
  EXPECT_EQ(opening(peft_pair("q.base_layer"), rank_2),
            "tensor \"base_model.model.q.base_layer.lora_A.weight\": its name has .base_layer, as "
            "the inner of several pairs of factors of one module, but there is no outer one");
}

TEST(OpenAdapter, RefusesKohyasOtherKindsByName) {
  const ScratchFolder folder;
  for (const auto& [suffix, text] : std::map<std::string, std::string>{
           {".dora_scale",
            "DoRA's magnitude as LyCORIS has it, one for each input where PEFT has one for each "
            "output"},
           {".lora_mid.weight", "a core tensor between the factors of a convolution (CP)"},
           {".diff", "a whole difference, which is not of low rank"}}) {
    HandTensors tensors = kohya_pair("lora_unet_a");
    tensors["lora_unet_a" + suffix] = {{1, 2}, {1, 1}};
    save_floats(folder / "x.safetensors", tensors);
    EXPECT_EQ(thrown_by<FormatError>([&] { open_adapter(folder / "x.safetensors"); }),
              (folder / "x.safetensors").string() + ": tensor \"lora_unet_a" + suffix +
                  "\": it is " + text +
                  ", but Eckart reads lora_down, lora_up and alpha of kohya's files");
  }
}

TEST(OpenAdapter, SaysHowToConvertAPickle) {
  const ScratchFolder folder;
  put(folder / "adapter_model.bin", "x");
  EXPECT_EQ(
      thrown_by<FileError>([&] { open_adapter(folder.path()); }),
      folder.path().string() +
          ": holds adapter_model.bin, a pickle, but Eckart reads safetensors: a pickle is a "
          "program\n  hint: load the adapter with PEFT and save it again: save_pretrained writes "
          "safetensors");
}

TEST(OpenAdapter, SaysWhatAFolderLacks) {
  const ScratchFolder folder;
  EXPECT_EQ(
      thrown_by<FileError>([&] { open_adapter(folder.path()); }),
      folder.path().string() +
          ": holds neither adapter_model.safetensors (PEFT) nor adapters.safetensors (MLX), but an "
          "adapter's folder has one of them\n  hint: give the .safetensors file itself when it has "
          "another name");
}

TEST(OpenAdapter, WarnsOfABaseThatWasChangedAtTheStart) {
  const ScratchFolder folder;
  save_peft(folder.path(), peft_pair("q"),
            "{'peft_type': 'LORA', 'r': 2, 'target_modules': ['q'], 'init_lora_weights': "
            "'pissa_niter_4'}");
  EXPECT_EQ(
      lines_of(open_adapter(folder.path()).warnings()),
      Lines{"warning changed_base: init_lora_weights is \"pissa_niter_4\": the factors go with the "
            "base that was changed at the start, not with the original one"});
}

TEST(CheckFinite, NamesANumberThatF32DoesNotHold) {
  const ScratchFolder folder;
  const std::vector<double> a = {1, 2e39}, b = {1};
  save_safetensors(folder / "adapter.safetensors",
                   {{{"x.lora_A.weight", Dtype::f64, Shape{1, 2}}, std::as_bytes(std::span(a))},
                    {{"x.lora_B.weight", Dtype::f64, Shape{1, 1}}, std::as_bytes(std::span(b))}});
  const Adapter adapter = open_adapter(folder / "adapter.safetensors");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { check_finite(adapter); }),
      "lora: tensor \"x.lora_A.weight\" of " + (folder / "adapter.safetensors").string() +
          " has 2e+39 at (0, 1), but an adapter's numbers must be within the range of F32, up "
          "to 3.4e38\n  hint: Eckart computes with F32; such a number comes from a training "
          "that went astray");
}

TEST(CheckFinite, NamesTheFirstNumberThatIsNone) {
  const ScratchFolder folder;
  HandTensors tensors = peft_pair("q");
  tensors[prefix + "q.lora_B.weight"].elements[5] = std::numeric_limits<float>::quiet_NaN();
  save_peft(folder.path(), tensors, rank_2);
  const Adapter adapter = open_adapter(folder.path());
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { check_finite(adapter); }),
      "lora: tensor \"base_model.model.q.lora_B.weight\" of " +
          (folder / "adapter_model.safetensors").string() +
          " has a NaN at (2, 1), but an adapter's numbers must be finite\n  hint: it comes from "
          "the "
          "training, or from a dtype that was too narrow: save the adapter again from a sound "
          "checkpoint");
}

}  // namespace
}  // namespace eckart::testing
