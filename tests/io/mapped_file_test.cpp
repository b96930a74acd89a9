#include "eckart/io/mapped_file.h"

#include "eckart/core/errors.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "tests/io/scratch_folder.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace eckart {
namespace {

using testing::put;
using testing::ScratchFolder;
using testing::thrown_by;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST(MappedFile, HoldsTheBytesOfTheFile) {
  const ScratchFolder folder;
  put(folder / "a", "hello");
  const MappedFile file = open_mapped(folder / "a");
  EXPECT_EQ(text_of(file), "hello");
  EXPECT_EQ(file.size(), 5U);
  EXPECT_EQ(file.path(), (folder / "a").string());
}

TEST(MappedFile, OfAnEmptyFileHasNoBytes) {
  const ScratchFolder folder;
  put(folder / "empty", "");
  const MappedFile file = open_mapped(folder / "empty");
  EXPECT_TRUE(file.bytes().empty());
  file.prefetch(0, 100);
  file.release(0, 100);
}

TEST(MappedFile, KeepsItsBytesWhenItMoves) {
  const ScratchFolder folder;
  put(folder / "a", "first");
  put(folder / "b", "second");
  MappedFile file = open_mapped(folder / "a");
  const std::byte* const at = file.bytes().data();
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.bytes().data(), at);
  EXPECT_EQ(text_of(moved), "first");
  moved = open_mapped(folder / "b");
  EXPECT_EQ(text_of(moved), "second");
}

TEST(MappedFile, StaysReadableAfterItWasReleasedOrPrefetched) {
  const ScratchFolder folder;
  std::string content;
  for (int i = 0; i < 50'000; ++i) content += static_cast<char>('a' + i % 23);
  put(folder / "a", content);
  const MappedFile file = open_mapped(folder / "a");
  file.prefetch(0, file.size());
  file.release(1, file.size() - 1);
  file.release(0, file.size());
  file.prefetch(5000, 20'000);
  file.prefetch(9, 3);
  file.release(1'000'000, 2'000'000);
  EXPECT_EQ(text_of(file), content);
}

TEST(MappedFile, SaysWhyItCantBeOpened) {
  const ScratchFolder folder;
  const std::string missing = (folder / "missing").string();
  EXPECT_EQ(thrown_by<FileError>([&] { open_mapped(missing); }),
            missing + ": can't be opened: No such file or directory");
}

TEST(MappedFile, OfAFolderIsAnError) {
  const ScratchFolder folder;
  EXPECT_EQ(thrown_by<FileError>([&] { open_mapped(folder.path()); }),
            folder.path().string() + ": is a folder, but only a regular file can be mapped");
}

TEST(MappedFile, OfAPipeIsAnErrorAndDoesNotWait) {
  const ScratchFolder folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(thrown_by<FileError>([&] { open_mapped(pipe); }),
            pipe + ": is a pipe, but only a regular file can be mapped");
  EXPECT_EQ(thrown_by<FileError>([&] { open_mapped("/dev/null"); }),
            "/dev/null: is a device, but only a regular file can be mapped");
}

TEST(MappedFile, ShowsAPathThatIsNoTextEscaped) {
  EXPECT_EQ(thrown_by<FileError>([&] { open_mapped("/missing\n\xff"); }),
            "/missing\\x0A\\xFF: can't be opened: No such file or directory");
}

}  // namespace
}  // namespace eckart
