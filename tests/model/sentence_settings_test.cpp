#include "eckart/model/sentence_settings.h"

#include "eckart/core/errors.h"
#include "eckart/model/embed_texts.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/model/golden_models.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::is_near;
using testing::thrown_by;

constexpr std::string_view three_modules = R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])";

class SentenceFolder {
 public:
  void put(const std::string& name, std::string_view content) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    testing::put(folder_ / name, content);
  }
  SentenceSettings read() { return read_sentence_settings(folder_.path()); }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  testing::ScratchFolder folder_;
};

TEST(SentenceSettings, WithoutModulesAreTheMean) {
  SentenceFolder folder;
  const SentenceSettings settings = folder.read();
  EXPECT_EQ(settings.poolings, std::vector<Pooling>{Pooling::mean});
  EXPECT_FALSE(settings.normalizes());
  EXPECT_FALSE(settings.is_from_folder);
}

TEST(SentenceSettings, ReadModulesPoolingAndLength) {
  SentenceFolder folder;
  folder.put("modules.json", three_modules);
  folder.put("1_Pooling/config.json",
             R"({"word_embedding_dimension": 24, "pooling_mode_cls_token": true,
                 "pooling_mode_mean_tokens": false})");
  folder.put("sentence_bert_config.json", R"({"max_seq_length": 17, "do_lower_case": false})");
  const SentenceSettings settings = folder.read();
  EXPECT_EQ(settings.poolings, std::vector<Pooling>{Pooling::cls});
  EXPECT_TRUE(settings.normalizes());
  EXPECT_EQ(settings.max_tokens, 17);
  EXPECT_TRUE(settings.is_from_folder);
}

TEST(SentenceSettings, ReadSeveralPoolingsInTheirOrder) {
  SentenceFolder folder;
  folder.put("modules.json", three_modules);
  folder.put("1_Pooling/config.json",
             R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true,
                 "pooling_mode_cls_token": true})");
  EXPECT_EQ(folder.read().poolings,
            (std::vector<Pooling>{Pooling::cls, Pooling::max, Pooling::mean}));
  folder.put("1_Pooling/config.json", R"({"pooling_mode": "lasttoken"})");
  EXPECT_EQ(folder.read().poolings, std::vector<Pooling>{Pooling::last});
}

TEST(SentenceSettings, ReadTheSettingsOfTheFirstModuleByAnyOfItsNames) {
  SentenceFolder folder;
  folder.put("sentence_roberta_config.json", R"({"max_seq_length": 9, "do_lower_case": true})");
  EXPECT_EQ(folder.read().max_tokens, 9);
  EXPECT_TRUE(folder.read().lower_cases);
}

TEST(SentenceSettings, ReadTheDefaultPrompt) {
  SentenceFolder folder;
  folder.put("modules.json", three_modules);
  folder.put("1_Pooling/config.json",
             R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  folder.put("config_sentence_transformers.json",
             R"({"prompts": {"query": "query: "}, "default_prompt_name": "query"})");
  EXPECT_EQ(folder.read().prompt, "query: ");
  EXPECT_FALSE(folder.read().pools_prompt);
  folder.put("config_sentence_transformers.json",
             R"({"prompts": {}, "default_prompt_name": "query"})");
  EXPECT_NE(thrown_by<ArgumentError>([&] {
              folder.read();
            }).find("takes the prompt \"query\", but has none of that name"),
            std::string::npos);
}

TEST(SentenceSettings, RefuseAModelInAFolderOfItsOwn) {
  SentenceFolder folder;
  folder.put("modules.json", R"([{"path": "0_Transformer", "type": "x.Transformer"}])");
  EXPECT_NE(thrown_by<ArgumentError>([&] {
              folder.read();
            }).find("but a model is taken from the folder itself"),
            std::string::npos);
}

TEST(SentenceSettings, RefuseModulesThatTheyDoNotKnow) {
  SentenceFolder folder;
  folder.put("modules.json", R"([{"type": "sentence_transformers.models.WeightedLayerPooling"}])");
  const std::string text = thrown_by<ArgumentError>([&] { folder.read(); });
  EXPECT_NE(
      text.find("has a module of the type \"sentence_transformers.models.WeightedLayerPooling\", "
                "but that one is not known\n"
                "  hint: known are Transformer, Pooling, Dense and Normalize"),
      std::string::npos)
      << text;
}

TEST(SentenceSettings, RefusePathsThatLeaveTheFolder) {
  SentenceFolder folder;
  folder.put("modules.json", R"([{"path": "../up", "type": "x.Pooling"}])");
  const std::string text = thrown_by<FormatError>([&] { folder.read(); });
  EXPECT_NE(text.find("the path of a module is \"../up\", but must lie in the folder"),
            std::string::npos)
      << text;
}

TEST(EmbedTexts, PoolsTheStatesOfTheTokens) {
  const Tensor<float> states = Tensor<float>::matrix({{1, -2}, {3, 4}, {5, -8}});
  const auto pool = [&](Pooling pooling) { return pooled(states.view(), {pooling}); };
  EXPECT_EQ(pool(Pooling::cls), (std::vector<float>{1, -2}));
  EXPECT_EQ(pool(Pooling::last), (std::vector<float>{5, -8}));
  EXPECT_EQ(pool(Pooling::max), (std::vector<float>{5, 4}));
  EXPECT_EQ(pool(Pooling::mean), (std::vector<float>{3, -2}));
  // (1 + 2 * 3 + 3 * 5) / 6 and (-2 + 2 * 4 - 3 * 8) / 6.
  EXPECT_EQ(pool(Pooling::weighted_mean), (std::vector<float>{22.0F / 6, -3}));
  const std::vector<float> root = pool(Pooling::mean_sqrt);
  EXPECT_FLOAT_EQ(root[0], 9 / std::sqrt(3.0F));
  EXPECT_EQ(pooled(states.view(), {Pooling::cls, Pooling::max}), (std::vector<float>{1, -2, 5, 4}));
}

// A golden encoder with a vocabulary of single letters.
class LetterEncoder {
 public:
  LetterEncoder() {
    std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char letter = 'a'; letter <= 'z'; ++letter) vocabulary += std::string(1, letter) + "\n";
    folder_.put("vocab.txt", vocabulary);
    for (const char* name : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(testing::golden_models() / "bert" / name, folder_.path() / name);
    }
  }
  SentenceFolder& folder() { return folder_; }

  Embeddings embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) {
    return embed_texts(open_language_model(folder_.path()), load_tokenizer(folder_.path()),
                       folder_.read(), texts, options);
  }
  std::string refusal(const std::vector<std::string>& texts) {
    return thrown_by<ArgumentError>([&] { embed(texts); });
  }

 private:
  SentenceFolder folder_;
};

TEST(EmbedTexts, GivesTheMeanOfTheLastStates) {
  LetterEncoder encoder;
  const Embeddings found = encoder.embed({"b a", "c"});
  EXPECT_EQ(found.n_tokens, (std::vector<Index>{4, 3}));
  const LanguageModel model = open_language_model(encoder.folder().path());
  const ForwardResult out = model.forward({{.ids = {2, 6, 5, 3}}});
  const std::vector<float> mean = pooled(out.last_hidden.view(), {Pooling::mean});
  // States of a batch of two may be summed in another order: 1e-5 of their size, which is 1.
  EXPECT_TRUE(is_near(found.vectors.view().select(0, 0), Tensor<float>(Shape{24}, mean).view(),
                      {.absolute = 1e-5}));
}

TEST(EmbedTexts, PreparesTextsAsTheFolderSays) {
  LetterEncoder encoder;
  const Tensor<float> plain = encoder.embed({"q b"}).vectors;
  EXPECT_TRUE(is_near(encoder.embed({" \t q b \n"}).vectors.view(), plain.view(), {}));
  encoder.folder().put("modules.json", three_modules);
  encoder.folder().put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  const Tensor<float> whole = encoder.embed({"q b"}).vectors;
  encoder.folder().put("config_sentence_transformers.json",
                       R"({"prompts": {"query": "q "}, "default_prompt_name": "query"})");
  EXPECT_TRUE(is_near(encoder.embed({"b"}).vectors.view(), whole.view(), {}));
  encoder.folder().put("1_Pooling/config.json",
                       R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  EXPECT_NE(encoder.refusal({"b"}).find("(include_prompt)"), std::string::npos);
}

TEST(SentenceSettings, NormalizeWhereThatIsTheLastStep) {
  SentenceSettings settings;
  settings.steps.emplace_back();
  EXPECT_TRUE(settings.normalizes());
  settings.steps.push_back({.w = Tensor<float>({2, 2}), .b = {}, .activation = {}});
  EXPECT_FALSE(settings.normalizes());
}

TEST(EmbedTexts, NeedsTexts) {
  LetterEncoder encoder;
  EXPECT_EQ(encoder.refusal({}), "embed: the list of texts is empty, but must have at least one");
}

TEST(EmbedTexts, NeedsAPooling) {
  LetterEncoder encoder;
  encoder.folder().put("modules.json", R"([{"path": "", "type": "x.Transformer"}])");
  EXPECT_EQ(encoder.refusal({"b"}),
            "embed: modules.json names no pooling, but a text's vector needs one\n"
            "  hint: choose one: --pooling mean, cls, max or last");
}

TEST(EmbedTexts, BringsVectorsToLength1WhereTheFolderSaysSo) {
  LetterEncoder encoder;
  encoder.folder().put("modules.json", three_modules);
  encoder.folder().put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  const Embeddings found = encoder.embed({"a b c", ""});
  for (Index row = 0; row < 2; ++row) {
    double sum = 0;
    for (Index j = 0; j < 24; ++j) {
      sum +=
          static_cast<double>(found.vectors(row, j)) * static_cast<double>(found.vectors(row, j));
    }
    EXPECT_NEAR(sum, 1, 1e-6);  // 24 squares, each rounded to float
  }
}

TEST(EmbedTexts, GivesATextTheSameVectorInAnyCompany) {
  LetterEncoder encoder;
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) texts.push_back(i % 2 == 0 ? "a b c" : "z y x w v u t");
  const Embeddings found = encoder.embed(texts);
  ASSERT_EQ(found.vectors.size(0), 400);
  for (Index i = 2; i < 400; ++i) {
    EXPECT_TRUE(is_near(found.vectors.view().select(0, i), found.vectors.view().select(0, i % 2),
                        {.absolute = 1e-5}));
  }
}

TEST(EmbedTexts, CutsLongTextsOnlyWhereThatIsAsked) {
  LetterEncoder encoder;
  encoder.folder().put("sentence_bert_config.json", R"({"max_seq_length": 5})");
  EXPECT_EQ(encoder.refusal({"a", "a b c d"}),
            "embed: text 2 has 6 tokens, but the model takes at most 5\n"
            "  hint: set truncate to embed its beginning");
  const Embeddings cut = encoder.embed({"a b c d"}, {.truncate = true});
  EXPECT_EQ(cut.truncated, std::vector<Index>{0});
  EXPECT_EQ(cut.n_tokens, std::vector<Index>{5});
  EXPECT_TRUE(is_near(cut.vectors, encoder.embed({"a b c"}).vectors));
}

TEST(EmbedTexts, NamesATextThatIsNoUtf8) {
  LetterEncoder encoder;
  const std::string text = encoder.refusal({"a", "b\xff"});
  EXPECT_EQ(text.find("embed: text 2: "), 0U) << text;
}

TEST(EmbedTexts, KeepsSpecialTokensOfATextThatIsCut) {
  LetterEncoder encoder;
  const Tokenizer tokenizer = load_tokenizer(encoder.folder().path());
  EXPECT_EQ(truncated(tokenizer, "a b c d", 4).ids, (std::vector<Index>{2, 5, 6, 3}));
  EXPECT_EQ(truncated(tokenizer, "a b", 4).ids, (std::vector<Index>{2, 5, 6, 3}));
  EXPECT_EQ(truncated(tokenizer, "a b", 2).ids, (std::vector<Index>{2, 3}));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { truncated(tokenizer, "a b", 1); }),
            "truncate: 1 tokens, but the 2 special ones alone are more");
}

}  // namespace
}  // namespace eckart
