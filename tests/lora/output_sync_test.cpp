// Whether a result's files are on the disk before the folder takes its name: the calls that ask the
// system for it are noted by functions of the same names.
#include "eckart/lora/merge.h"
#include "eckart/lora/output_folder.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/lora/merge_case.h"
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

// Files by the names they had when they were synced.
std::vector<std::string> synced_files;

void note(int descriptor) {
  std::error_code ignored;
  synced_files.push_back(
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), ignored)
          .filename()
          .string());
}

bool was_synced(const std::string& name) {
  return std::find(synced_files.begin(), synced_files.end(), name) != synced_files.end();
}

}  // namespace

extern "C" int fdatasync(int descriptor) {
  note(descriptor);
  return static_cast<int>(syscall(SYS_fdatasync, descriptor));
}

namespace eckart {
namespace {

using testing::put;
using testing::ScratchFolder;

TEST(OutputFolder, SyncsEveryFileOfTheResultBeforeItHasItsName) {
  const ScratchFolder scratch;
  for (const bool is_synced : {true, false}) {
    synced_files.clear();
    OutputFolder folder(scratch / (is_synced ? "one" : "two"), Fingerprint());
    std::filesystem::create_directory(folder.result_path("inner"));
    put(folder.result_path("model.safetensors"), "1");
    put(folder.result_path("inner/tokenizer.json"), "2");
    folder.commit(is_synced);
    EXPECT_EQ(was_synced("model.safetensors"), is_synced);
    EXPECT_EQ(was_synced("tokenizer.json"), is_synced);
  }
}

TEST(MergeFiles, SyncsShardsAndCarriedFilesUnlessToldNotTo) {
  const ScratchFolder scratch;
  std::filesystem::create_directory(scratch / "base");
  testing::save(scratch / "base/model.safetensors", {{"w.weight", {1, 2}, {1, 2}}});
  put(scratch / "base/tokenizer.json", "{}");
  testing::save_adapter(scratch / "a",
                        {testing::lora_b("w", {1, 1}, {1}), testing::lora_a("w", {1, 2}, {1, 1})});
  const testing::Case one(scratch / "base", {scratch / "a"});
  for (const bool is_synced : {true, false}) {
    synced_files.clear();
    one.merge(scratch / (is_synced ? "one" : "two"), {.is_synced = is_synced});
    EXPECT_EQ(was_synced("model.safetensors"), is_synced);
    EXPECT_EQ(was_synced("tokenizer.json"), is_synced);
  }
}

}  // namespace
}  // namespace eckart
