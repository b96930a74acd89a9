#include "eckart/io/checkpoint.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_folder.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::file_of;
using testing::in_quotes;
using testing::Lines;
using testing::lines_of;
using testing::put;
using testing::rules_of;
using testing::ScratchFolder;
using testing::thrown_by;

constexpr const char* index_name = "model.safetensors.index.json";

// A file with one U8 tensor of two elements for each name.
std::string file_with(const std::vector<std::string>& names) {
  std::string header = "{";
  for (std::size_t i = 0; i < names.size(); ++i) {
    header += fmt::format("{}'{}':{{'dtype':'U8','shape':[2],'data_offsets':[{},{}]}}",
                          i == 0 ? "" : ",", names[i], 2 * i, 2 * i + 2);
  }
  std::string file = file_of(in_quotes(header + "}"), 2 * names.size());
  for (std::size_t i = 0; i < 2 * names.size(); ++i) {
    file[file.size() - 2 * names.size() + i] = static_cast<char>(i);
  }
  return file;
}

void put_index(const fs::path& path, const std::string& weight_map,
               const std::string& metadata = "{}") {
  put(path, in_quotes("{'metadata':" + metadata + ",'weight_map':{" + weight_map + "}}"));
}

// Two shards, one.safetensors with a and b, two.safetensors with c, and an index of them.
void put_two_shards(const fs::path& folder) {
  put(folder / "one.safetensors", file_with({"a", "b"}));
  put(folder / "two.safetensors", file_with({"c"}));
  put_index(folder / index_name,
            "'a':'one.safetensors','b':'one.safetensors','c':'two.safetensors'",
            "{'total_size':6}");
}

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) names.push_back(tensor.stored->name);
  return names;
}

std::string open_error(const fs::path& path) {
  return thrown_by<FileError>([&] { open_checkpoint(path); });
}

TEST(NaturalLess, ComparesRunsOfDigitsAsNumbers) {
  EXPECT_TRUE(natural_less("layers.2.w", "layers.10.w"));
  EXPECT_FALSE(natural_less("layers.10.w", "layers.2.w"));
  EXPECT_TRUE(natural_less("a1b3", "a1b20"));
  EXPECT_TRUE(natural_less("a", "a0"));
  EXPECT_TRUE(natural_less("a9", "b1"));
  EXPECT_TRUE(natural_less("a.9", "a.b"));
  EXPECT_TRUE(natural_less("99999999999999999999998", "99999999999999999999999"));
  EXPECT_TRUE(natural_less("", "a"));
  EXPECT_FALSE(natural_less("a", "a"));
}

TEST(NaturalLess, IsAStrictOrderThatTellsAllNamesApart) {
  const std::vector<std::string> ordered = {"",    "0",    "00",   "0a", "00a", "1", "01",
                                            "1.2", "01.2", "1.10", "2",  "10",  "a", "a1",
                                            "a01", "a1b",  "a01b", "a2", "a-1", "ab"};
  for (const std::string& a : ordered) {
    for (const std::string& b : ordered) {
      EXPECT_EQ(natural_less(a, b) || natural_less(b, a), a != b) << a << " " << b;
      EXPECT_FALSE(natural_less(a, b) && natural_less(b, a)) << a << " " << b;
      for (const std::string& c : ordered) {
        if (natural_less(a, b) && natural_less(b, c)) {
          EXPECT_TRUE(natural_less(a, c)) << a << " " << b << " " << c;
        }
      }
    }
  }
}

TEST(Checkpoint, OfOneFile) {
  const ScratchFolder folder;
  const fs::path path = folder / "model.safetensors";
  put(path, file_with({"layers.10.w", "layers.2.w"}));
  const Checkpoint checkpoint = open_checkpoint(path);
  EXPECT_EQ(checkpoint.path(), path.string());
  EXPECT_EQ(checkpoint.folder(), folder.path());
  EXPECT_FALSE(checkpoint.index());
  EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"layers.2.w", "layers.10.w"}));
  EXPECT_EQ(checkpoint.tensor_bytes(), 4U);
  EXPECT_TRUE(checkpoint.warnings().empty());
}

TEST(Checkpoint, OfAFileInTheCurrentFolderHasAFolder) {
  EXPECT_EQ(thrown_by<FileError>([] { find_checkpoint("missing.safetensors"); }),
            "missing.safetensors: can't be opened: No such file or directory");
  const ScratchFolder scratch;
  put(scratch / "x.safetensors", file_with({"a"}));
  const fs::path before = fs::current_path();
  fs::current_path(scratch.path());
  const CheckpointFiles found = find_checkpoint("x.safetensors");
  fs::current_path(before);
  EXPECT_EQ(found.folder, ".");
}

TEST(Checkpoint, OfAnIndexIsAllItsShards) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  for (const fs::path& path : {folder.path(), folder / index_name}) {
    Checkpoint opened = open_checkpoint(path);
    const Checkpoint checkpoint = std::move(opened);
    EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"a", "b", "c"}));
    ASSERT_TRUE(checkpoint.index());
    EXPECT_EQ(checkpoint.index()->total_size, 6U);
    ASSERT_EQ(checkpoint.shards().size(), 2U);
    EXPECT_EQ(checkpoint.tensors()[2].shard, 1U);
    EXPECT_EQ(checkpoint.find("c"), &checkpoint.shards()[1].tensors()[0]);
    EXPECT_EQ(checkpoint.find("d"), nullptr);
    EXPECT_EQ(lines_of(checkpoint.warnings()), Lines{});
    const auto bytes = checkpoint.bytes("b");
    ASSERT_EQ(bytes.size(), 2U);
    EXPECT_EQ(std::to_integer<int>(bytes[0]), 2);
    EXPECT_EQ(std::to_integer<int>(bytes[1]), 3);
  }
}

TEST(Checkpoint, TensorsAreWidened) {
  const ScratchFolder folder;
  put(folder / "model.safetensors", file_with({"a", "b"}));
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  const Tensor<float> b = checkpoint.tensor<float>("b");
  ASSERT_EQ(b.shape(), Shape{2});
  EXPECT_EQ(b(0), 2.0F);
  EXPECT_EQ(b(1), 3.0F);
  EXPECT_EQ(checkpoint.tensor<double>("a")(1), 1.0);
}

TEST(Checkpoint, ATensorThatHasNoWideningIsAnError) {
  const ScratchFolder folder;
  put(folder / "model.safetensors",
      file_of(in_quotes("{'w':{'dtype':'F4','shape':[2],'data_offsets':[0,1]}}"), 1));
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { checkpoint.tensor<float>("w"); }),
      "checkpoint: w is F4, but only numbers of whole bytes that are not complex can be read as "
      "floats\n  hint: its bytes can be read as they are: bytes(name)");
}

TEST(Checkpoint, AnUnknownNameListsTheClosest) {
  const ScratchFolder folder;
  put(folder / "model.safetensors",
      file_with({"model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
                 "model.layers.1.mlp.up_proj.weight", "model.layers.2.mlp.up_proj.weight",
                 "lm_head.weight", "norm"}));
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  const auto error = [&](const std::string& name) {
    return thrown_by<ArgumentError>([&] { checkpoint.bytes(name); });
  };
  const std::string of = " is no tensor of " + folder.path().string() + ", which holds 6";
  EXPECT_EQ(error("model.layers.0.mlp.up_proj.wieght"),
            "checkpoint: model.layers.0.mlp.up_proj.wieght" + of +
                "\n  hint: did you mean model.layers.0.mlp.up_proj.weight, "
                "model.layers.1.mlp.up_proj.weight or model.layers.2.mlp.up_proj.weight?");
  EXPECT_EQ(error("layers.0.mlp.up_proj.weight"),
            "checkpoint: layers.0.mlp.up_proj.weight" + of +
                "\n  hint: did you mean model.layers.0.mlp.up_proj.weight, "
                "model.layers.1.mlp.up_proj.weight or model.layers.2.mlp.up_proj.weight?");
  EXPECT_EQ(error("model.lm_head.weight"),
            "checkpoint: model.lm_head.weight" + of + "\n  hint: did you mean lm_head.weight?");
  EXPECT_EQ(error("xyzzy"), "checkpoint: xyzzy" + of);
  EXPECT_EQ(error("a\nb"), "checkpoint: a\\x0Ab" + of);
}

TEST(Checkpoint, TakesTheSingleFileBeforeTheIndexAsTransformersDoes) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  put(folder / "model.safetensors", file_with({"whole"}));
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_EQ(names_of(checkpoint), std::vector<std::string>{"whole"});
  EXPECT_EQ(
      lines_of(checkpoint.warnings()),
      Lines(3,
            "warning extra_file: the file stands beside the checkpoint but is not part of it, "
            "and was not read"));
  EXPECT_EQ(checkpoint.warnings().all()[0].file, (folder / index_name).string());
  EXPECT_EQ(checkpoint.warnings().all()[1].file, (folder / "one.safetensors").string());
}

TEST(Checkpoint, FilesThatAnIndexDoesNotNameAreReportedAndNotRead) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  put(folder / "consolidated.safetensors", "not even safetensors");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_EQ(names_of(checkpoint).size(), 3U);
  EXPECT_EQ(rules_of(checkpoint.warnings()), Lines{"warning extra_file"});
  EXPECT_EQ(rules_of(open_checkpoint(folder / index_name).warnings()), Lines{"warning extra_file"});
}

TEST(Checkpoint, AnIndexOfAnotherNameIsTakenWhenItIsTheOnlyOne) {
  for (const std::string name :
       {"model.fp16.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json"}) {
    const ScratchFolder folder;
    put(folder / "one.safetensors", file_with({"a"}));
    put_index(folder / name, "'a':'one.safetensors'");
    EXPECT_EQ(names_of(open_checkpoint(folder.path())), std::vector<std::string>{"a"});
  }
}

TEST(Checkpoint, SeveralIndexesLeaveTheChoiceOpen) {
  const ScratchFolder folder;
  put_index(folder / "a.safetensors.index.json", "");
  put_index(folder / "b.safetensors.index.json", "");
  EXPECT_EQ(
      open_error(folder.path()),
      folder.path().string() +
          ": the folder holds 2 indexes, a.safetensors.index.json, b.safetensors.index.json, but "
          "one is a checkpoint\n  hint: give the path of one of them");
}

TEST(Checkpoint, AnAdapterAloneIsACheckpoint) {
  const ScratchFolder folder;
  put(folder / "adapter_model.safetensors", file_with({"lora_A", "lora_B"}));
  put(folder / "adapter_config.json", "{}");
  EXPECT_EQ(names_of(open_checkpoint(folder.path())),
            (std::vector<std::string>{"lora_A", "lora_B"}));
}

TEST(Checkpoint, WithoutAnIndexIsAllFilesInNaturalOrder) {
  const ScratchFolder folder;
  put(folder / "part10.safetensors", file_with({"c"}));
  put(folder / "part2.safetensors", file_with({"d"}));
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(checkpoint.shards()[0].path(), (folder / "part2.safetensors").string());
}

TEST(Checkpoint, WithoutAnIndexItsNumberedShardsMustBeComplete) {
  const auto error = [](const std::vector<std::string>& numbers) {
    const ScratchFolder folder;
    for (const std::string& number : numbers) {
      put(folder / ("model-" + number + ".safetensors"), file_with({number}));
    }
    try {
      open_checkpoint(folder.path());
    } catch (const FormatError& failure) {
      return failure.message().substr(folder.path().string().size());
    }
    return std::string("none");
  };
  EXPECT_EQ(error({"00001-of-00003", "00003-of-00003"}),
            ": 1 of 3 shards of model is missing: number 2");
  EXPECT_EQ(error({"00002-of-00004"}), ": 3 of 4 shards of model are missing: number 1, 3, 4");
  EXPECT_EQ(error({"00001-of-00002", "00002-of-00002"}), "none");
  // From 0, up to n - 1 or up to n: both exist.
  EXPECT_EQ(error({"00000-of-00002", "00001-of-00002"}), "none");
  EXPECT_EQ(error({"000000-of-000002", "000001-of-000002", "000002-of-000002"}), "none");
  EXPECT_EQ(error({"00000-of-00003", "00002-of-00003"}),
            ": 1 of 3 shards of model is missing: number 1");
  EXPECT_EQ(error({"00001-of-18446744073709551615"}).substr(0, 60),
            ": 18446744073709551614 of 18446744073709551615 shards of mod");
}

TEST(Checkpoint, AFolderWithoutWeightsSaysWhatStandsThere) {
  const auto error = [](const std::vector<std::string>& names) {
    const ScratchFolder folder;
    for (const std::string& name : names) {
      fs::create_directories((folder / name).parent_path());
      put(folder / name, "");
    }
    return open_error(folder.path()).substr(folder.path().string().size());
  };
  EXPECT_EQ(error({"pytorch_model.bin", "config.json"}),
            ": the folder holds no .safetensors file, only PyTorch weights: pytorch_model.bin\n"
            "  hint: convert them in Python: "
            "AutoModel.from_pretrained(FOLDER).save_pretrained(OTHER_FOLDER)");
  EXPECT_EQ(error({"model.Q4_K_M.gguf"}),
            ": the folder holds no .safetensors file, only GGUF weights: model.Q4_K_M.gguf\n"
            "  hint: take the model's safetensors files, which GGUF is made from");
  EXPECT_EQ(error({"a.json", "b.txt", "c", "d"}),
            ": the folder holds no .safetensors file, only a.json, b.txt, c and 1 more");
  EXPECT_EQ(error({}), ": the folder holds no .safetensors file and no other file");
  EXPECT_EQ(
      error({"unet/x.safetensors", "vae/x.safetensors", "model_index.json"}),
      ": the folder holds no .safetensors file, but its folders do: unet, vae\n  hint: give one "
      "of them");
}

TEST(Checkpoint, AMissingShardIsAnErrorThatListsAllOfThem) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  fs::remove(folder / "two.safetensors");
  EXPECT_EQ(open_error(folder.path()), (folder / index_name).string() +
                                           ": 1 of the 2 shards that the index names is not in its "
                                           "folder, with 1 of its 3 tensors: two.safetensors\n"
                                           "  hint: without them the model has holes: fetch them");
  fs::remove(folder / "one.safetensors");
  EXPECT_EQ(open_error(folder / index_name),
            (folder / index_name).string() +
                ": 2 of the 2 shards that the index names are not in its folder, with 3 of its 3 "
                "tensors: one.safetensors, "
                "two.safetensors\n  hint: without them the model has holes: fetch them");
}

TEST(Checkpoint, ATensorInTwoShardsIsAnError) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  put(folder / "two.safetensors", file_with({"b", "c"}));
  EXPECT_EQ(
      open_error(folder.path()),
      (folder / "two.safetensors").string() +
          ": tensor b: stands in one.safetensors too, but a name means one tensor\n  hint: where "
          "the folder holds two checkpoints, give the file or index of one");
}

TEST(Checkpoint, AnUnsafeShardNameIsAnErrorBeforeAnythingIsOpened) {
  const ScratchFolder folder;
  put_index(folder / index_name, "'w':'/etc/passwd'");
  EXPECT_EQ(open_error(folder.path()),
            (folder / index_name).string() +
                ": tensor w: its shard \"/etc/passwd\" holds a '/', but a shard must be a plain "
                ".safetensors file beside the index");
}

TEST(Checkpoint, AnIndexThatDisagreesWithItsShardsOpensWithWarnings) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  put_index(folder / index_name,
            "'a':'one.safetensors','c':'one.safetensors','gone':'two.safetensors'",
            "{'total_size':8198,'total_parameters':7}");
  const Checkpoint checkpoint = open_checkpoint(folder.path());
  EXPECT_EQ(names_of(checkpoint), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(
      lines_of(checkpoint.warnings()),
      (Lines{
          "warning index_wrong_shard c: the index names one.safetensors, but the tensor stands in "
          "two.safetensors",
          "warning index_missing_tensor gone: the index names two.safetensors, but that file does "
          "not hold the tensor | a loader leaves it at random values or stops: fetch shard and "
          "index again",
          "warning index_unlisted_tensor b 115-117: the file holds the tensor, but the index does "
          "not list it",
          "warning index_total_size: metadata.total_size is 8198, but the tensors hold 6 bytes, "
          "8192 fewer (buffers that were not saved, or weights that were converted after it was "
          "written)",
          "warning index_total_parameters: metadata.total_parameters is 7, but the tensors hold 6 "
          "elements"}));
}

TEST(Checkpoint, ATotalSizeThatIsSomethingElseIsExplained) {
  const auto why = [](const std::string& total) {
    const ScratchFolder folder;
    put(folder / "one.safetensors",
        file_of(in_quotes("{'a':{'dtype':'F64','shape':[4],'data_offsets':[0,32]}}"), 32));
    put_index(folder / index_name, "'a':'one.safetensors'", "{'total_size':" + total + "}");
    const Checkpoint checkpoint = open_checkpoint(folder.path());
    const std::string message = checkpoint.warnings().all().at(0).message;
    return message.substr(message.find('('));
  };
  EXPECT_EQ(why("95"), "(it counts the headers, too)");
  EXPECT_EQ(why("1"), "(it is the number of tensors)");
  EXPECT_EQ(why("4"), "(it is the number of elements)");
  EXPECT_EQ(why("16"), "(the index was edited, or weights were converted after it was written)");
}

TEST(Checkpoint, ABrokenShardIsNamed) {
  const ScratchFolder folder;
  put_two_shards(folder.path());
  put(folder / "two.safetensors", "version https://git-lfs.github.com/spec/v1\nsize 5000000000\n");
  EXPECT_EQ(open_error(folder.path()),
            (folder / "two.safetensors").string() +
                ": the file is a Git LFS pointer of a file of 5000000000 bytes (5.00 GB), not that "
                "file\n  hint: fetch the file itself: git lfs pull");
}

}  // namespace
}  // namespace eckart
