#include "eckart/io/validate.h"

#include <filesystem>
#include <string>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_folder.h"
#include <gtest/gtest.h>
#include <sys/stat.h>

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

const char* const one_tensor = "{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}";
const char* const other_tensor = "{'b':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}";

void put_tensor(const fs::path& path, const char* header, std::size_t data_bytes = 4) {
  put(path, file_of(in_quotes(header), data_bytes));
}

TEST(Validate, ASoundFileAndFolderHaveNoFindings) {
  const ScratchFolder folder;
  put_tensor(folder / "model.safetensors", one_tensor);
  EXPECT_EQ(lines_of(validate(folder.path())), Lines{});
  EXPECT_EQ(lines_of(validate(folder / "model.safetensors")), Lines{});
}

TEST(Validate, APathThatCantBeOpenedIsAFinding) {
  const ScratchFolder folder;
  const std::string missing = (folder / "missing.safetensors").string();
  const Findings findings = validate(missing);
  EXPECT_EQ(lines_of(findings),
            Lines{"error unreadable: the file can't be opened: No such file or directory"});
  EXPECT_EQ(findings.all()[0].file, missing);
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(lines_of(validate(pipe)),
            Lines{"error unreadable: the file is a pipe, but only a regular file can be mapped"});
}

TEST(Validate, AFolderWithoutACheckpointIsAFinding) {
  const ScratchFolder folder;
  put(folder / "model.gguf", "GGUF");
  EXPECT_EQ(lines_of(validate(folder.path())),
            Lines{"error no_checkpoint: the folder holds no .safetensors file, only GGUF weights: "
                  "model.gguf | take the model's safetensors files, which GGUF is made from"});
}

TEST(Validate, EveryFindingNamesTheFileAndThePlace) {
  const ScratchFolder folder;
  const std::string path = (folder / "x.safetensors").string();
  put_tensor(path, "{'a':{'dtype':'U8','shape':[3],'data_offsets':[0,4]}}", 9);
  const Findings findings = validate(path);
  EXPECT_EQ(
      lines_of(findings),
      (Lines{"error size_mismatch a 9-60: U8 of 3 takes 3 bytes, but its data_offsets [0, 4] span "
             "4",
             "error file_length 65-70: 5 bytes follow the last tensor, which ends at byte 65, but "
             "the file must end with it"}));
  for (const Finding& finding : findings.all()) EXPECT_EQ(finding.file, path);
}

TEST(Validate, AnIndexIsHeldAgainstItsShardsWithErrors) {
  const ScratchFolder folder;
  put_tensor(folder / "one.safetensors", one_tensor);
  put_tensor(folder / "two.safetensors", other_tensor);
  put(folder / "model.safetensors.index.json",
      in_quotes("{'metadata':{'total_size':9},'weight_map':"
                "{'a':'two.safetensors','b':'two.safetensors','c':'one.safetensors'}}"));
  const Lines expected = {"error index_wrong_shard a", "error index_missing_tensor c",
                          "warning index_total_size"};
  EXPECT_EQ(rules_of(validate(folder.path())), expected);
  EXPECT_EQ(rules_of(validate(folder / "model.safetensors.index.json")), expected);
}

TEST(Validate, GoesOnPastAMissingOrBrokenShard) {
  const ScratchFolder folder;
  put_tensor(folder / "one.safetensors", one_tensor, 3);
  put(folder / "model.safetensors.index.json",
      in_quotes("{'weight_map':{'a':'one.safetensors','b':'two.safetensors','c':'/x'}}"));
  EXPECT_EQ(rules_of(validate(folder.path())),
            (Lines{"error index_shard_name c", "error index_missing_shard", "error file_length"}));
}

TEST(Validate, FilesBesideTheCheckpointAreWarnings) {
  const ScratchFolder folder;
  put_tensor(folder / "model.safetensors", one_tensor);
  put_tensor(folder / "copy.safetensors", one_tensor);
  EXPECT_EQ(rules_of(validate(folder.path())), Lines{"warning extra_file"});
}

TEST(Validate, ATensorInTwoFilesIsAnError) {
  const ScratchFolder folder;
  put_tensor(folder / "a.safetensors", one_tensor);
  put_tensor(folder / "b.safetensors", one_tensor);
  EXPECT_EQ(rules_of(validate(folder.path())), Lines{"error tensor_in_two_shards a"});
}

TEST(Validate, AConfigIsNoIndex) {
  const ScratchFolder folder;
  put(folder / "config.json", "{\"model_type\":\"bert\"}");
  EXPECT_EQ(rules_of(validate(folder / "config.json")), Lines{"error index_json"});
}

TEST(Validate, WhatIsTakenForAModelByMistakeIsNamed) {
  const ScratchFolder folder;
  put(folder / "model.safetensors", "version https://git-lfs.github.com/spec/v1\nsize 90868376\n");
  put(folder / "x.npz", "<html></html>");
  put(folder / "x.npy", "version https://git-lfs.github.com/spec/v1\nsize 9\n");
  put(folder / "model.gguf", "GGUF\x03");
  EXPECT_EQ(rules_of(validate(folder.path())), Lines{"error git_lfs_pointer"});
  EXPECT_EQ(rules_of(validate(folder / "x.npz")), Lines{"error html_page"});
  EXPECT_EQ(rules_of(validate(folder / "x.npy")), Lines{"error git_lfs_pointer"});
  EXPECT_EQ(rules_of(validate(folder / "model.gguf")), Lines{"error gguf"});
}

TEST(Validate, ArraysAreToldByTheirBytesThenByTheirName) {
  const ScratchFolder folder;
  // An array of no name's ending, cut within its header; nothing of an array under its ending.
  put(folder / "array", "\x93NUMPY\x01");
  put(folder / "x.npy", std::string("\x01\x02\x03", 3));
  for (const char* const name : {"array", "x.npy"}) {
    const Findings findings = validate(folder / name);
    ASSERT_EQ(findings.errors(), 1U) << name;
    EXPECT_EQ(findings.all()[0].rule.substr(0, 3), "npy") << findings.all()[0].rule;
  }
}

TEST(Validate, ASoundArrayHasNoFindings) {
  const ScratchFolder folder;
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  put(folder / "x.npy", std::string("\x93NUMPY\x01\0\x76\0", 10) + header + std::string(8, '\0'));
  EXPECT_EQ(lines_of(validate(folder / "x.npy")), Lines{});
}

}  // namespace
}  // namespace eckart
