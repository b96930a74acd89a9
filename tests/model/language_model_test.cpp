#include "eckart/model/language_model.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"

#include <cmath>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/model/golden_models.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::GoldenModel;
using testing::is_near;
using testing::thrown_by;

double largest_of(TensorView<const float> a) {
  double most = 0;
  for_each_element([&](const float& x) { most = std::max(most, std::abs(static_cast<double>(x))); },
                   a);
  return most;
}

// What the issue asks of float: 1e-5 of the array's largest element.
testing::Bound float_bound(TensorView<const float> expected) {
  return {.absolute = 1e-5 * largest_of(expected)};
}

// Row by row of the axis, without the rows of padding: nobody reads what stands there.
void expect_rows_near(TensorView<const float> actual, TensorView<const float> expected, Index axis,
                      const std::vector<bool>& mask, const std::string& what) {
  ASSERT_TRUE(same_sizes(actual.shape(), expected.shape()))
      << what << " " << to_string(actual.shape()) << " " << to_string(expected.shape());
  for (std::size_t t = 0; t < mask.size(); ++t) {
    if (!mask[t]) continue;
    const auto row = static_cast<Index>(t);
    EXPECT_TRUE(
        is_near(actual.select(axis, row), expected.select(axis, row), float_bound(expected)))
        << what << ", token " << t;
  }
}

class EveryGoldenModel : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryGoldenModel, ComputesWhatTransformersDoes) {
  const GoldenModel golden(GetParam());
  const std::vector<bool>& mask = golden.sequence.mask;
  const bool has_logits = golden.expected.find("logits") != nullptr;
  ASSERT_EQ(golden.model.has_logits(), has_logits);
  const ForwardResult out =
      golden.model.forward({golden.sequence}, {.logits = has_logits ? Logits::all : Logits::none,
                                               .hidden_states = true,
                                               .attention_weights = true});
  const Index n_layers = golden.model.architecture().n_layers;
  for (Index layer = 0; layer <= n_layers; ++layer) {
    const auto expected = golden.expected.tensor<float>("hidden." + std::to_string(layer));
    const Tensor<float>& actual =
        layer == n_layers ? out.last_hidden : out.hidden_states[static_cast<std::size_t>(layer)];
    expect_rows_near(actual, expected, 0, mask, "hidden state " + std::to_string(layer));
  }
  for (Index layer = 0; layer < n_layers; ++layer) {
    const auto expected = golden.expected.tensor<float>("attention." + std::to_string(layer));
    expect_rows_near(out.attention[static_cast<std::size_t>(layer)][0], expected, 1, mask,
                     "attention " + std::to_string(layer));
  }
  if (!has_logits) return;
  const auto expected = golden.expected.tensor<float>("logits");
  expect_rows_near(out.logits, expected, 0, mask, "logits");
}

TEST_P(EveryGoldenModel, GivesASequenceTheSameStatesInABatch) {
  const GoldenModel golden(GetParam());
  const TokenSequence other = {.ids = {7, 5, 30, 11, 9}};
  const ForwardResult alone = golden.model.forward({golden.sequence});
  const ForwardResult both = golden.model.forward({other, golden.sequence, other});
  ASSERT_EQ(both.begin, (std::vector<Index>{0, 5, 18, 23}));
  const TensorView<const float> rows = both.last_hidden.view().slice(0, {5, 18});
  // BLAS sums the rows at the edge of its blocks in another order than those within.
  expect_rows_near(rows, alone.last_hidden, 0, golden.sequence.mask, "last hidden state");
  EXPECT_TRUE(is_near(both.last_hidden.view().slice(0, {0, 5}),
                      both.last_hidden.view().slice(0, {18, 23}), float_bound(both.last_hidden)));
}

TEST_P(EveryGoldenModel, ReadsTokenByTokenWhatItReadsAtOnce) {
  const GoldenModel golden(GetParam());
  if (!golden.model.architecture().is_decoder) {
    EXPECT_NE(thrown_by<ArgumentError>([&] {
                golden.model.start();
              }).find("but only a causal model reads token by token"),
              std::string::npos);
    return;
  }
  // This turns keys by the length of the text so far: what is cached was turned by a shorter one.
  if (GetParam() == "llama_dynamic") return;
  // This one turns by other frequencies behind its original context, where it begins anew.
  const std::size_t first = GetParam() == "phi3_long" ? 8 : 0;
  const std::vector<Index>& ids = golden.sequence.ids;
  const ForwardResult whole = golden.model.forward({{.ids = ids}}, {.attention_weights = true});
  DecodingState state = golden.model.start();
  for (std::size_t begin = 0; begin < ids.size();) {
    // Four tokens first, then one at a time, then the rest at once.
    const std::size_t n = begin == 0 ? 4 : begin < 9 ? 1 : ids.size() - begin;
    const ForwardResult part = golden.model.extend(
        state,
        {ids.begin() + static_cast<Index>(begin), ids.begin() + static_cast<Index>(begin + n)});
    const auto at = static_cast<Index>(begin);
    if (begin >= first) {
      EXPECT_TRUE(is_near(part.last_hidden.view(),
                          whole.last_hidden.view().slice(0, {at, at + static_cast<Index>(n)}),
                          float_bound(whole.last_hidden)))
          << "from token " << begin;
    }
    begin += n;
    EXPECT_EQ(state.length(), static_cast<Index>(begin));
  }
}

INSTANTIATE_TEST_SUITE_P(LanguageModel, EveryGoldenModel,
                         ::testing::ValuesIn(testing::golden_model_names()),
                         [](const auto& golden) { return golden.param; });

TEST(LanguageModel, HasAGoldenModelOfEveryFamily) {
  std::set<std::string> families;
  for (const std::string& name : testing::golden_model_names()) {
    families.insert(GoldenModel(name).model.architecture().family);
  }
  EXPECT_EQ(families, (std::set<std::string>{"bert", "gemma", "gemma2", "gpt2", "gpt_neox", "llama",
                                             "mistral", "phi3", "qwen2", "qwen3", "roberta"}));
}

TEST(LanguageModel, GivesTheSameBitsForEveryNumberOfThreads) {
  const GoldenModel golden("qwen2");
  set_thread_count(1);
  const ForwardResult one = golden.model.forward({golden.sequence}, {.logits = Logits::all});
  set_thread_count(3);
  const ForwardResult three = golden.model.forward({golden.sequence}, {.logits = Logits::all});
  set_thread_count(0);
  EXPECT_TRUE(is_near(one.logits, three.logits));
}

TEST(LanguageModel, GivesTheLogitsOfTheLastTokenThatIsNoPadding) {
  const GoldenModel golden("mistral");  // its last three tokens are padding
  const ForwardResult all = golden.model.forward({golden.sequence}, {.logits = Logits::all});
  const ForwardResult last = golden.model.forward({golden.sequence}, {.logits = Logits::last});
  ASSERT_EQ(last.logits.size(0), 1);
  EXPECT_TRUE(is_near(last.logits.view().select(0, 0), all.logits.view().select(0, 9),
                      float_bound(all.logits)));
}

TEST(LanguageModel, UnembedsItsLastResidualToItsLogits) {
  for (const char* name : {"llama", "gemma2", "gpt2", "roberta"}) {
    const GoldenModel golden(name);
    const ForwardResult out =
        golden.model.forward({golden.sequence}, {.logits = Logits::all, .hidden_states = true});
    EXPECT_TRUE(is_near(golden.model.unembed(out.hidden_states.back()), out.logits,
                        float_bound(out.logits)))
        << name;
  }
}

TEST(LanguageModel, ShowsItsIntermediatesInTheOrderOfComputation) {
  const GoldenModel golden("llama");
  std::vector<std::string> names;
  Tensor<float> residual;
  ForwardOptions options{.logits = Logits::all, .hidden_states = true};
  options.on_intermediate = [&](const Intermediate& one) {
    names.emplace_back(one.name);
    if (one.name == "layers.0.residual") residual = Tensor<float>(one.values);
  };
  const ForwardResult out = golden.model.forward({golden.sequence}, options);
  const std::vector<std::string> first(names.begin(), names.begin() + 14);
  EXPECT_EQ(first, (std::vector<std::string>{
                       "embedding", "layers.0.attention_norm", "layers.0.q", "layers.0.k",
                       "layers.0.v", "layers.0.mixed", "layers.0.attention",
                       "layers.0.residual_attention", "layers.0.mlp_norm", "layers.0.gate",
                       "layers.0.up", "layers.0.activated", "layers.0.mlp", "layers.0.residual"}));
  EXPECT_EQ(names.back(), "logits");
  EXPECT_TRUE(is_near(residual, out.hidden_states[1]));
}

TEST(LanguageModel, RefusesWhatIsNoBatch) {
  const GoldenModel golden("bert");
  const auto run = [&](const std::vector<TokenSequence>& batch) {
    return thrown_by<ArgumentError>([&] { golden.model.forward(batch); });
  };
  EXPECT_EQ(run({}), "forward: the batch is empty");
  EXPECT_EQ(run({{.ids = {}}}), "forward: the sequence has no tokens, but must have at least one");
  EXPECT_EQ(run({{.ids = {1}}, {.ids = {3, 48}}}),
            "forward: token 1 of sequence 1 of the batch has the id 48, but the model has those "
            "from 0 to 47");
  EXPECT_EQ(run({{.ids = {-1}}}),
            "forward: token 0 of the sequence has the id -1, but the model has those from 0 to 47");
  EXPECT_EQ(run({{.ids = {1}, .types = {2}}}),
            "forward: token 0 of the sequence has the type 2, but the model has those from 0 to 1");
  EXPECT_EQ(run({{.ids = {1, 2}, .types = {1}}}),
            "forward: the sequence has 2 tokens and 1 token types, but each token takes one");
  EXPECT_EQ(run({{.ids = {1, 2}, .types = {}, .mask = {true}}}),
            "forward: the sequence has 2 tokens and a mask of 1, but each token takes one entry");
  EXPECT_EQ(run({{.ids = std::vector<Index>(33, 1)}}),
            "forward: the sequence has 33 tokens, but the model's context leaves room for 32\n"
            "  hint: give at most 32 tokens");
}

TEST(LanguageModel, RefusesLogitsWithoutAHead) {
  const GoldenModel golden("bert_base");
  EXPECT_EQ(thrown_by<ArgumentError>(
                [&] { golden.model.forward({{.ids = {1}}}, {.logits = Logits::last}); }),
            "forward: BertModel has no unembedding, so that there are no logits");
}

TEST(LanguageModel, GoesOnFromNoStateThatAFailureLeftHalfway) {
  const GoldenModel golden("llama");
  DecodingState state = golden.model.start();
  golden.model.extend(state, {5, 6});
  const auto fail = [](const Intermediate& one) {
    if (one.name == "layers.1.q") throw std::runtime_error("stop");
  };
  EXPECT_THROW(golden.model.extend(state, {7}, {.on_intermediate = fail}), std::runtime_error);
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { golden.model.extend(state, {7}); }),
      "extend: an earlier call failed halfway, so that the layers of the state hold different "
      "tokens\n  hint: begin again with start()");
}

TEST(LanguageModel, GoesOnFromNoStateOfAnotherModel) {
  const GoldenModel one("llama"), other("mistral");
  DecodingState state = one.model.start();
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { other.model.extend(state, {7}); }),
      "extend: the state is of another model, but must be one that this model's start() made");
}

TEST(LanguageModel, ShowsAttentionWithoutKeepingIt) {
  const GoldenModel golden("llama");
  std::vector<Tensor<float>> shown;
  const ForwardResult out =
      golden.model.forward({{.ids = {5, 6, 7}}}, {.attention_weights = true,
                                                  .keeps_attention = false,
                                                  .on_intermediate = [&](const auto& one) {
                                                    if (one.name.ends_with("attention_weights"))
                                                      shown.emplace_back(one.values);
                                                  }});
  EXPECT_TRUE(out.attention.empty());
  const ForwardResult kept =
      golden.model.forward({{.ids = {5, 6, 7}}}, {.attention_weights = true});
  ASSERT_EQ(shown.size(), kept.attention.size());
  for (std::size_t i = 0; i < shown.size(); ++i) {
    EXPECT_TRUE(is_near(shown[i].view(), kept.attention[i].front().view(), {}));
  }
}

TEST(LanguageModel, HasTheContextThatScaledPositionsReach) {
  EXPECT_EQ(GoldenModel("llama").model.context(), 64);
  EXPECT_EQ(GoldenModel("llama_dynamic").model.context(), 16);  // 2 times 8
  EXPECT_EQ(GoldenModel("roberta_base").model.context(), 28);   // its padding is token 3
  EXPECT_EQ(GoldenModel("roberta").model.context(), 30);        // two rows are padding's
}

// A copy of a golden model with another config or other tensors.
class ChangedModel {
 public:
  explicit ChangedModel(const std::string& name) {
    const std::filesystem::path folder = testing::golden_models() / name;
    config_ = testing::content_of(folder / "config.json");
    std::filesystem::copy_file(folder / "model.safetensors", folder_ / "model.safetensors");
  }
  ChangedModel& replace(const std::string& what, const std::string& by) {
    const std::size_t at = config_.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    if (at != std::string::npos) config_.replace(at, what.size(), by);
    return *this;
  }
  /// Writes the tensors again without one of them.
  ChangedModel& without(const std::string& name) {
    const Checkpoint file = open_checkpoint(folder_ / "model.safetensors");
    std::vector<TensorBytes> tensors;
    for (const CheckpointTensor& one : file.tensors()) {
      if (one.stored->name == name) continue;
      tensors.push_back(
          {{one.stored->name, one.stored->dtype, one.stored->shape}, file.bytes(one.stored->name)});
    }
    EXPECT_EQ(tensors.size() + 1, file.tensors().size()) << name;
    save_safetensors(folder_ / "model.safetensors", tensors);
    return *this;
  }
  LanguageModel open() {
    testing::put(folder_ / "config.json", config_);
    return open_language_model(folder_.path());
  }
  template <class Error>
  std::string refusal() {
    std::string text = thrown_by<Error>([&] { open(); });
    const std::string path = folder_.path().string();
    for (std::size_t at = text.find(path); at != std::string::npos; at = text.find(path)) {
      text.replace(at, path.size(), "FOLDER");
    }
    return text;
  }

 private:
  testing::ScratchFolder folder_;
  std::string config_;
};

TEST(LanguageModel, NamesATensorThatIsMissing) {
  EXPECT_EQ(
      ChangedModel("llama").without("model.layers.1.mlp.up_proj.weight").refusal<FormatError>(),
      "FOLDER: model.layers.1.mlp.up_proj.weight is not in the file, but config.json implies "
      "40x24 (d_ff, d_model)");
  EXPECT_EQ(ChangedModel("llama").without("lm_head.weight").refusal<FormatError>(),
            "FOLDER: lm_head.weight is not in the file, but config.json implies a head of its own, "
            "48x24 (vocab, d_model)\n  hint: with tie_word_embeddings true the head is the token "
            "embedding");
}

TEST(LanguageModel, RunsAnEncoderWhoseHeadIsMissing) {
  ChangedModel changed("bert");
  const LanguageModel model = changed.without("cls.predictions.transform.dense.weight").open();
  EXPECT_FALSE(model.has_logits());
  EXPECT_EQ(model.forward({{.ids = {1, 2}}}).last_hidden.size(0), 2);
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { model.forward({{.ids = {1}}}, {.logits = Logits::last}); }),
      "forward: cls.predictions.transform.dense.weight is not in the file, so that there are "
      "no logits");
}

TEST(LanguageModel, NamesWhereConfigAndTensorsContradict) {
  const std::string text = ChangedModel("llama")
                               .replace("\"intermediate_size\": 40", "\"intermediate_size\": 44")
                               .refusal<FormatError>();
  EXPECT_NE(text.find("model.layers.{0,1}.mlp.down_proj.weight"), std::string::npos) << text;
  EXPECT_NE(text.find("24x44"), std::string::npos) << text;
  EXPECT_NE(text.find("24x40"), std::string::npos) << text;
}

TEST(LanguageModel, NamesTheFamiliesThatItRuns) {
  EXPECT_EQ(ChangedModel("llama").replace("\"llama\"", "\"phi\"").refusal<ArgumentError>(),
            "forward: FOLDER/config.json is of the family phi, but it has no forward pass yet\n"
            "  hint: families with one: bert, gemma, gemma2, gpt2, gpt_neox, llama, mistral, phi3, "
            "qwen2, qwen3, roberta");
}

TEST(LanguageModel, WarnsOfWhatTheConfigDoesNotAccountFor) {
  ChangedModel changed("llama");
  const LanguageModel model =
      changed.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1").open();
  ASSERT_EQ(model.warnings().size(), 1U);
  EXPECT_NE(model.warnings()[0].find("layer"), std::string::npos) << model.warnings()[0];
}

TEST(LanguageModel, EndsTextsAsTheGenerationConfigSays) {
  EXPECT_EQ(GoldenModel("llama").model.end_ids(), (std::vector<Index>{2}));
}

}  // namespace
}  // namespace eckart
