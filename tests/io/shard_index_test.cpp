#include "eckart/io/shard_index.h"

#include "eckart/io/shard_names.h"

#include <filesystem>
#include <string>
#include <vector>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_folder.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::bytes_of;
using testing::in_quotes;
using testing::Lines;
using testing::lines_of;
using testing::put;
using testing::rules_of;
using testing::ScratchFolder;

struct ReadIndex {
  ShardIndex index;
  Findings findings;
};

ReadIndex read(const std::string& json, const std::string& path = "/nowhere/index.json") {
  ReadIndex result;
  const std::string text = in_quotes(json);
  result.index = read_shard_index(bytes_of(text), path, result.findings);
  return result;
}
Lines check(const std::string& json) { return lines_of(read(json).findings); }

// The finding on an index whose one tensor is in this shard, without what is the same in all.
std::string refusal(const std::string& shard) {
  const ReadIndex result = read("{'weight_map':{'w':'" + shard + "'}}");
  EXPECT_TRUE(result.index.entries.empty());
  EXPECT_TRUE(result.index.shards.empty());
  const Lines lines = lines_of(result.findings);
  if (lines.size() != 1) return std::to_string(lines.size()) + " findings";
  const std::string start = "error index_shard_name w ";
  const std::string end = ", but a shard must be a plain .safetensors file beside the index";
  EXPECT_TRUE(lines[0].starts_with(start) && lines[0].ends_with(end)) << lines[0];
  const std::size_t colon = lines[0].find(": ");
  return lines[0].substr(colon + 2, lines[0].size() - end.size() - colon - 2);
}

TEST(ShardIndex, IsReadInTheOrderOfTheFile) {
  const ReadIndex result = read(
      "{'metadata':{'total_size':12,'total_parameters':3,'note':[{'total_size':1}]},'dtype':'bf16',"
      "'weight_map':{'b':'m-2.safetensors','a':'m-1.safetensors','c':'m-2.safetensors'}}");
  EXPECT_EQ(lines_of(result.findings), Lines{});
  EXPECT_EQ(result.index.path, "/nowhere/index.json");
  EXPECT_EQ(result.index.shards, (std::vector<std::string>{"m-2.safetensors", "m-1.safetensors"}));
  ASSERT_EQ(result.index.entries.size(), 3U);
  EXPECT_EQ(result.index.entries[0].tensor, "b");
  EXPECT_EQ(result.index.entries[0].shard, 0U);
  EXPECT_EQ(result.index.entries[1].tensor, "a");
  EXPECT_EQ(result.index.entries[1].shard, 1U);
  EXPECT_EQ(result.index.entries[2].shard, 0U);
  EXPECT_EQ(result.index.total_size, 12U);
  EXPECT_EQ(result.index.total_parameters, 3U);
}

TEST(ShardIndex, WithoutAWeightMapIsNoIndex) {
  const Lines none = {
      "error index_json: the file has no weight_map object, but an index has one | give the "
      "model's "
      "folder, or its *.safetensors.index.json"};
  EXPECT_EQ(check("{}"), none);
  EXPECT_EQ(check("{'weight_map':null}"), none);
  EXPECT_EQ(check("{'model_type':'bert'}"),
            Lines{"error index_json: the file is a model's config, which has no weight_map as an "
                  "index has | give the model's folder, or its *.safetensors.index.json"});
}

TEST(ShardIndex, ThatIsNoJsonNamesTheByte) {
  EXPECT_EQ(check("{'weight_map':{'a':'m.safetensors',}}"),
            Lines{"error index_json 35-37: the index is no valid JSON: at byte 35: unexpected '}'; "
                  "expected string literal"});
  EXPECT_EQ(rules_of(read("{'weight_map':{").findings), Lines{"error index_json"});
  EXPECT_EQ(rules_of(read("").findings), Lines{"error index_json"});
  EXPECT_EQ(rules_of(read("{'weight_map':{'\xff':'m.safetensors'}}").findings),
            Lines{"error index_json"});
  EXPECT_EQ(rules_of(read("{'weight_map':{}}" + std::string("\0", 1)).findings),
            Lines{"error index_json"});
  EXPECT_EQ(rules_of(read("{'x':" + std::string(1'000'000, '[')).findings),
            Lines{"error index_json"});
}

TEST(ShardIndex, ThatIsAnotherFileIsNamedForWhatItIs) {
  EXPECT_EQ(rules_of(read("version https://git-lfs.github.com/spec/v1\nsize 1\n").findings),
            Lines{"error git_lfs_pointer"});
  EXPECT_EQ(rules_of(read("<!doctype html>").findings), Lines{"error html_page"});
  EXPECT_EQ(check("[1]"), Lines{"error json_text 0-3: the file is JSON text: \"[1]\""});
}

TEST(ShardIndex, AShardMustBeAString) {
  EXPECT_EQ(
      check("{'weight_map':{'a':1,'b':['x'],'c':null}}"),
      (Lines{"error index_json a 19-20: its shard is the integer 1, but must be a file's name",
             "error index_json b 25-26: its shard is an array, but must be a file's name",
             "error index_json c 35-39: its shard is null, but must be a file's name"}));
}

TEST(ShardIndex, NoKeyStandsTwice) {
  EXPECT_EQ(check("{'weight_map':{'w':'a.safetensors','v':'a.safetensors','w':'b.safetensors'}}"),
            Lines{"error duplicate_name w: stands twice in the index, in a.safetensors and in "
                  "b.safetensors, but a name means one tensor"});
  const ReadIndex result = read("{'weight_map':{'w':'a.safetensors','w':'b.safetensors'}}");
  ASSERT_EQ(result.index.entries.size(), 1U);
  EXPECT_EQ(result.index.entries[0].shard, 1U);
  EXPECT_EQ(
      check("{'weight_map':{},'weight_map':{}}"),
      Lines{"error duplicate_name 17-29: the key \"weight_map\" stands twice, but a key means "
            "one thing"});
  EXPECT_EQ(
      check("{'metadata':{'total_size':1,'total_size':2},'weight_map':{}}"),
      Lines{"error duplicate_name 28-40: the key \"total_size\" stands twice, but a key means "
            "one thing"});
}

TEST(ShardIndex, KeysAreRememberedByTheThousandAndShownPrintable) {
  EXPECT_EQ(check("{'a\\n':1,'a\\n':2,'weight_map':{}}"),
            Lines{"error duplicate_name 9-14: the key \"a\\x0A\" stands twice, but a key means one "
                  "thing"});
  std::string json = "{'weight_map':{},'metadata':{";
  for (int i = 0; i < 5000; ++i) json += fmt::format("{}'{}':1", i == 0 ? "" : ",", i);
  const ReadIndex result = read(json + "}}");
  EXPECT_EQ(rules_of(result.findings), Lines{"error index_too_large"});
  EXPECT_EQ(result.findings.all()[0].message,
            "the index has more than 1000 keys beside its tensors, but no more are read");
}

TEST(ShardIndex, TotalsThatAreNoIntegersAreWarnings) {
  EXPECT_EQ(
      check("{'metadata':{'total_size':1.5e9,'total_parameters':'7B'},'weight_map':{}}"),
      (Lines{"warning index_total_size 26-31: metadata.total_size is the number 1.5e9, no plain "
             "integer, but must be an integer from 0 on",
             "warning index_total_parameters 51-55: metadata.total_parameters is the string "
             "\"7B\", but must be an integer from 0 on"}));
  EXPECT_EQ(
      rules_of(read("{'metadata':{'total_size':99999999999999999999},'weight_map':{}}").findings),
      Lines{"warning index_total_size"});
}

TEST(ShardIndex, RefusesEveryNameThatCouldLeaveItsFolder) {
  EXPECT_EQ(refusal("../w.safetensors"), "its shard \"../w.safetensors\" holds a '/'");
  EXPECT_EQ(refusal("/etc/passwd"), "its shard \"/etc/passwd\" holds a '/'");
  EXPECT_EQ(refusal("sub/w.safetensors"), "its shard \"sub/w.safetensors\" holds a '/'");
  EXPECT_EQ(refusal("..\\\\w.safetensors"), "its shard \"..\\w.safetensors\" holds a '\\'");
  EXPECT_EQ(refusal("C:w.safetensors"),
            "its shard \"C:w.safetensors\" holds a ':', as a drive or an address does");
  EXPECT_EQ(refusal("https:w.safetensors"),
            "its shard \"https:w.safetensors\" holds a ':', as a drive or an address does");
  EXPECT_EQ(refusal("..w.safetensors"), "its shard \"..w.safetensors\" holds '..'");
  EXPECT_EQ(refusal(".."), "its shard \"..\" holds '..'");
  EXPECT_EQ(refusal("."), "its shard \".\" does not end with .safetensors");
  EXPECT_EQ(refusal(""), "its shard \"\" is empty");
  EXPECT_EQ(refusal(".safetensors"), "its shard \".safetensors\" does not end with .safetensors");
  EXPECT_EQ(refusal("a\\u0000.safetensors"), "its shard \"a\\x00.safetensors\" holds a NUL");
  EXPECT_EQ(refusal("a\\n.safetensors"),
            "its shard \"a\\x0A.safetensors\" holds a control character");
  EXPECT_EQ(refusal("pytorch_model.bin"),
            "its shard \"pytorch_model.bin\" does not end with .safetensors");
  EXPECT_EQ(refusal(std::string(250, 'x') + ".safetensors").substr(0, 14), "its shard \"xxx");
}

TEST(ShardIndex, ARefusedNameIsReportedOnceAndItsTensorsAreLeftOut) {
  const ReadIndex result =
      read("{'weight_map':{'a':'/x','b':'m.safetensors','c':'/x','d':'m.safetensors'}}");
  EXPECT_EQ(rules_of(result.findings), Lines{"error index_shard_name a"});
  ASSERT_EQ(result.index.entries.size(), 2U);
  EXPECT_EQ(result.index.entries[1].tensor, "d");
}

TEST(ShardIndex, ALinkOutOfTheFolderIsRefused) {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "model");
  put(scratch / "secret.safetensors", "");
  put(scratch / "model/inside.safetensors", "");
  fs::create_symlink("../secret.safetensors", scratch / "model/out.safetensors");
  fs::create_symlink("../missing.safetensors", scratch / "model/dangling.safetensors");
  fs::create_symlink("inside.safetensors", scratch / "model/in.safetensors");
  fs::create_symlink("loop.safetensors", scratch / "model/loop.safetensors");
  const std::string path = (scratch / "model/model.safetensors.index.json").string();
  const auto shard = [&](const std::string& name) {
    return read("{'weight_map':{'w':'" + name + "'}}", path);
  };
  const std::string target = (fs::canonical(scratch.path()) / "secret.safetensors").string();
  EXPECT_EQ(
      lines_of(shard("out.safetensors").findings),
      Lines{"error index_symlink w 19-36: its shard \"out.safetensors\" is a link to " + target +
            ", but a shard must stay in the index's folder | copy the file into the folder if "
            "you trust it"});
  EXPECT_TRUE(shard("out.safetensors").index.entries.empty());
  EXPECT_EQ(rules_of(shard("dangling.safetensors").findings), Lines{"error index_symlink w"});
  EXPECT_EQ(rules_of(shard("loop.safetensors").findings), Lines{"error index_symlink w"});
  EXPECT_EQ(rules_of(shard("in.safetensors").findings), Lines{});
  EXPECT_EQ(rules_of(shard("inside.safetensors").findings), Lines{});
  EXPECT_EQ(rules_of(shard("missing.safetensors").findings), Lines{});
}

TEST(ShardIndex, AFolderReachedByALinkIsStillItsFolder) {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "model");
  put(scratch / "model/w.safetensors", "");
  fs::create_symlink("w.safetensors", scratch / "model/in.safetensors");
  fs::create_directory_symlink("model", scratch / "link");
  const std::string path = (scratch / "link/index.json").string();
  EXPECT_EQ(rules_of(read("{'weight_map':{'w':'in.safetensors'}}", path).findings), Lines{});
}

// Hugging Face's cache: hub/models--NAME/{blobs,snapshots/REVISION}, files as links to blobs.
TEST(ShardIndex, TheCacheOfHuggingFaceMayLinkToItsOwnBlobsAlone) {
  const ScratchFolder scratch;
  const fs::path mine = scratch / "hub/models--me--mine";
  const fs::path other = scratch / "hub/models--me--other";
  const fs::path snapshot = mine / "snapshots/0123abcd";
  fs::create_directories(snapshot);
  fs::create_directories(mine / "blobs/deep");
  fs::create_directories(other / "blobs");
  put(mine / "blobs/aa", "");
  put(mine / "blobs/deep/bb", "");
  put(other / "blobs/cc", "");
  put(mine / "refs", "");
  fs::create_symlink("../../blobs/aa", snapshot / "good.safetensors");
  fs::create_symlink("../../blobs/deep/bb", snapshot / "deep.safetensors");
  fs::create_symlink("../../../models--me--other/blobs/cc", snapshot / "other.safetensors");
  fs::create_symlink("../../refs", snapshot / "refs.safetensors");
  const auto rules = [](const fs::path& folder, const std::string& name) {
    return rules_of(
        read("{'weight_map':{'w':'" + name + "'}}", (folder / "index.json").string()).findings);
  };
  EXPECT_EQ(rules(snapshot, "good.safetensors"), Lines{});
  EXPECT_EQ(rules(snapshot, "deep.safetensors"), Lines{"error index_symlink w"});
  EXPECT_EQ(rules(snapshot, "other.safetensors"), Lines{"error index_symlink w"});
  EXPECT_EQ(rules(snapshot, "refs.safetensors"), Lines{"error index_symlink w"});
  // The same links in a folder that is no snapshot of a model.
  const fs::path fake = scratch / "hub/mine/snapshots/0123abcd";
  fs::create_directories(fake);
  fs::create_directories(scratch / "hub/mine/blobs");
  put(scratch / "hub/mine/blobs/aa", "");
  fs::create_symlink("../../blobs/aa", fake / "good.safetensors");
  EXPECT_EQ(rules(fake, "good.safetensors"), Lines{"error index_symlink w"});
}

TEST(ShardIndex, HasAtMostTenThousandShards) {
  std::string json = "{'weight_map':{";
  for (int i = 0; i < 10'002; ++i) {
    json += fmt::format("{}'{}':'{}.safetensors'", i == 0 ? "" : ",", i, i);
  }
  const ReadIndex result = read(json + "}}");
  EXPECT_EQ(result.index.shards.size(), 10'000U);
  EXPECT_EQ(rules_of(result.findings), (Lines{"error index_too_large", "error index_too_large"}));
  EXPECT_EQ(result.findings.all()[0].message,
            "the index names more than 10000 shards, but no more are read");
}

TEST(ShardNumber, IsReadWithAnyNumberOfDigits) {
  const auto parsed = [](const std::string& name) {
    const auto number = parse_shard_number(name);
    return number ? fmt::format("{} {}/{}", number->prefix, number->number, number->of) : "none";
  };
  EXPECT_EQ(parsed("model-00002-of-00003.safetensors"), "model 2/3");
  EXPECT_EQ(parsed("model-000000-of-000014.safetensors"), "model 0/14");
  EXPECT_EQ(parsed("a-b-00001-of-00002.safetensors"), "a-b 1/2");
  EXPECT_EQ(parsed("model.safetensors"), "none");
  EXPECT_EQ(parsed("model-1-of-x.safetensors"), "none");
  EXPECT_EQ(parsed("model--of-00002.safetensors"), "none");
  EXPECT_EQ(parsed("model-00001-of-00002.bin"), "none");
  EXPECT_EQ(parsed("model-99999999999999999999-of-00002.safetensors"), "none");
}

}  // namespace
}  // namespace eckart
