// The files of a base's folder that go with a merge.
#include "eckart/core/errors.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/lora/merge_case.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::put;
using testing::ScratchFolder;
using testing::thrown_by;

// What `say` returns in a process that is not root's, for whom every file can be read.
std::string said_without_rights(const std::function<std::string()>& say) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(1);
    const std::string text = say();
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t n = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

class Carried : public ::testing::Test {
 protected:
  Carried() {
    fs::create_directory(folder_ / "base");
    testing::save(folder_ / "base/model.safetensors", {{"w.weight", {1, 2}, {1, 2}}});
    testing::save_adapter(
        folder_ / "a", {testing::lora_b("w", {1, 1}, {1}), testing::lora_a("w", {1, 2}, {1, 1})});
  }
  MergeReport merge() const {
    return testing::Case(folder_ / "base", {folder_ / "a"}).merge(folder_ / "merged");
  }
  std::string refusal() const {
    std::string said = thrown_by<FileError>([&] { merge(); });
    EXPECT_FALSE(fs::exists(folder_ / "merged.partial"));
    const std::string path = folder_.path().string() + "/";
    return said.starts_with(path) ? said.substr(path.size()) : said;
  }

  ScratchFolder folder_;
};

TEST_F(Carried, AFileThatCantBeReadIsNamedAsThat) {
  put(folder_ / "base/secret.txt", "s");
  fs::permissions(folder_ / "base/secret.txt", fs::perms::none);
  fs::permissions(folder_.path(), fs::perms::all);
  const std::string said =
      said_without_rights([&] { return thrown_by<FileError>([&] { merge(); }); });
  fs::permissions(folder_ / "base/secret.txt", fs::perms::all);
  EXPECT_NE(said.find("base/secret.txt: can't be read: Permission denied\n"), std::string::npos)
      << said;
}

TEST_F(Carried, LinksAreFollowedToFilesAndFolders) {
  fs::create_directories(folder_ / "elsewhere/more");
  put(folder_ / "elsewhere/vocab.txt", "v");
  put(folder_ / "elsewhere/more/merges.txt", "m");
  fs::create_symlink(folder_ / "elsewhere/vocab.txt", folder_ / "base/vocab.txt");
  fs::create_directory_symlink(folder_ / "elsewhere", folder_ / "base/extra");
  EXPECT_EQ(merge().carried,
            (std::vector<std::string>{"extra/more/merges.txt", "extra/vocab.txt", "vocab.txt"}));
  EXPECT_EQ(content_of(folder_ / "merged/extra/more/merges.txt"), "m");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "merged/vocab.txt")));
}

TEST_F(Carried, ALinkToAFolderThatItIsInEnds) {
  fs::create_directory(folder_ / "base/sub");
  put(folder_ / "base/sub/x.txt", "x");
  fs::create_directory_symlink(folder_ / "base", folder_ / "base/sub/up");
  fs::create_directory_symlink(".", folder_ / "base/self");
  EXPECT_EQ(merge().carried, std::vector<std::string>{"sub/x.txt"});
}

TEST_F(Carried, ALinkToNothingIsNamedBeforeAnyWork) {
  fs::create_symlink("gone.json", folder_ / "base/tokenizer.json");
  EXPECT_EQ(
      refusal(),
      "base/tokenizer.json: is a link to a file that does not exist\n  hint: the result takes "
      "all files beside the base's weights along: mend it, or move it away");
  fs::remove(folder_ / "base/tokenizer.json");
  // Weights in other formats are not carried: theirs does not matter.
  fs::create_symlink("gone.bin", folder_ / "base/pytorch_model.bin");
  EXPECT_EQ(merge().left_out, std::vector<std::string>{"pytorch_model.bin"});
}

}  // namespace
}  // namespace eckart
