#include "eckart/io/atomic_file.h"

#include "eckart/core/errors.h"

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/thrown.h"
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace eckart {
namespace {

using testing::content_of;
using testing::put;
using testing::ScratchFolder;
using Names = std::vector<std::string>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// What `body` throws, as one text.
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const FileError& error) {
    return error.what();
  }
  return "no error";
}

constexpr int skipped = 77;

// Runs `body` in a process of its own and returns its exit status.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      dprintf(STDERR_FILENO, "child: %s\n", error.what());
    }
    _exit(status);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int expect_in_child(const std::string& text, const std::string& expected) {
  if (text == expected) return 0;
  dprintf(STDERR_FILENO, "got      %s\nexpected %s\n", text.c_str(), expected.c_str());
  return 1;
}

// Root's rights over namespaces of this process alone, for anyone; false where that is not allowed.
bool become_root_of(int namespaces) {
  if (geteuid() == 0) return namespaces == 0 || unshare(namespaces) == 0;
  const std::string user = "0 " + std::to_string(geteuid()) + " 1";
  const std::string group = "0 " + std::to_string(getegid()) + " 1";
  if (unshare(CLONE_NEWUSER | namespaces) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream users("/proc/self/uid_map");
  std::ofstream groups("/proc/self/gid_map");
  return (users << user << std::flush) && (groups << group << std::flush);
}

// Root may write everywhere: such tests run as nobody.
void become_nobody() {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(skipped);
}

bool has_nameless_files(const ScratchFolder& folder) {
  const int descriptor = open(folder.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (descriptor >= 0) close(descriptor);
  return descriptor >= 0;
}

TEST(AtomicFile, NothingStandsThereBeforeTheCommit) {
  const ScratchFolder folder;
  AtomicFile file(folder / "a.bin");
  file.write(bytes_of("half"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.bin"));
  file.write(bytes_of(" and half"));
  file.commit();
  EXPECT_EQ(content_of(folder / "a.bin"), "half and half");
  EXPECT_EQ(folder.names(), Names{"a.bin"});
}

TEST(AtomicFile, WithoutACommitTheOldFileStaysAndNothingElse) {
  const ScratchFolder folder;
  put(folder / "a.bin", "old");
  {
    AtomicFile file(folder / "a.bin");
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(content_of(folder / "a.bin"), "old");
  EXPECT_EQ(folder.names(), Names{"a.bin"});
}

TEST(AtomicFile, ACommitReplacesTheOldFile) {
  const ScratchFolder folder;
  put(folder / "a.bin", "a longer old text");
  save_text(folder / "a.bin", "new");
  EXPECT_EQ(content_of(folder / "a.bin"), "new");
  EXPECT_EQ(folder.names(), Names{"a.bin"});
}

TEST(AtomicFile, AReaderOfTheOldFileKeepsIt) {
  const ScratchFolder folder;
  put(folder / "a.bin", "old");
  std::ifstream reader(folder / "a.bin");
  save_text(folder / "a.bin", "new");
  std::string seen;
  reader >> seen;
  EXPECT_EQ(seen, "old");
}

TEST(AtomicFile, AnEmptyFileCanBeWritten) {
  const ScratchFolder folder;
  save_text(folder / "a.bin", "");
  EXPECT_EQ(content_of(folder / "a.bin"), "");
}

TEST(AtomicFile, PiecesComeInAnyOrder) {
  const ScratchFolder folder;
  AtomicFile file(folder / "a.bin");
  file.write_at(4, bytes_of("efgh"));
  file.write_at(0, bytes_of("abcd"));
  file.write(bytes_of("ij"));  // behind the last byte written so far
  file.write_at(12, bytes_of("m"));
  file.commit();
  EXPECT_EQ(content_of(folder / "a.bin"), std::string("abcdefghij\0\0m", 13));
}

TEST(AtomicFile, SeveralThreadsWriteAtOnce) {
  const ScratchFolder folder;
  AtomicFile file(folder / "a.bin");
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&file, t] {
      for (int i = t; i < 256; i += 4) {
        const char byte = static_cast<char>(i);
        file.write_at(static_cast<std::uint64_t>(i), bytes_of({&byte, 1}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  file.write(bytes_of("end"));
  file.commit();
  std::string expected;
  for (int i = 0; i < 256; ++i) expected += static_cast<char>(i);
  EXPECT_EQ(content_of(folder / "a.bin"), expected + "end");
}

TEST(AtomicFile, AReservedFileIsAsLongAsWhatWasWritten) {
  const ScratchFolder folder;
  AtomicFile file(folder / "a.bin");
  file.reserve(1 << 20);
  file.write(bytes_of("abc"));
  file.commit();
  EXPECT_EQ(content_of(folder / "a.bin"), "abc");
}

TEST(AtomicFile, AMovedFileIsCommittedOnce) {
  const ScratchFolder folder;
  AtomicFile first(folder / "a.bin");
  first.write(bytes_of("ab"));
  {
    AtomicFile second = std::move(first);
    second.write(bytes_of("cd"));
    second.commit();
  }
  EXPECT_EQ(content_of(folder / "a.bin"), "abcd");
}

TEST(AtomicFile, ANewFileHasThePermissionsOfAnyNewFile) {
  const ScratchFolder folder;
  const mode_t mask = umask(027);
  save_text(folder / "a.bin", "x");
  umask(mask);
  struct stat facts {};
  ASSERT_EQ(stat((folder / "a.bin").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0640U);
}

TEST(AtomicFile, AReplacedFileKeepsItsPermissions) {
  const ScratchFolder folder;
  put(folder / "a.bin", "old");
  ASSERT_EQ(chmod((folder / "a.bin").c_str(), 0604), 0);
  save_text(folder / "a.bin", "new");
  struct stat facts {};
  ASSERT_EQ(stat((folder / "a.bin").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777, 0604U);
}

TEST(AtomicFile, RootLeavesAFileToItsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const ScratchFolder folder;
  put(folder / "a.bin", "old");
  ASSERT_EQ(chown((folder / "a.bin").c_str(), 65534, 65534), 0);
  save_text(folder / "a.bin", "new");
  struct stat facts {};
  ASSERT_EQ(stat((folder / "a.bin").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_uid, 65534U);
  EXPECT_EQ(facts.st_gid, 65534U);
}

TEST(AtomicFile, ASymbolicLinkIsWrittenThrough) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  put(folder / "elsewhere/a.bin", "old");
  std::filesystem::create_symlink("elsewhere/a.bin", folder / "link");
  std::filesystem::create_symlink("link", folder / "link_to_link");
  save_text(folder / "link_to_link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link_to_link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(content_of(folder / "elsewhere/a.bin"), "new");
}

TEST(AtomicFile, ADanglingLinkGetsItsTarget) {
  const ScratchFolder folder;
  std::filesystem::create_symlink("b.bin", folder / "link");
  save_text(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(content_of(folder / "b.bin"), "new");
}

TEST(AtomicFile, AVeryLongNameIsWritten) {
  const ScratchFolder folder;
  const std::string name(255, 'n');
  put(folder / name, "old");
  save_text(folder / name, "new");
  EXPECT_EQ(content_of(folder / name), "new");
  EXPECT_EQ(folder.names(), Names{name});
}

TEST(AtomicFile, WhatIsNoRegularFileIsRefused) {
  const ScratchFolder folder;
  const std::string at = folder.path().string();
  std::filesystem::create_directory(folder / "folder");
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("round", folder / "round");
  const auto opening = [&](const std::string& name) {
    return error_of([&] { AtomicFile file(name); });
  };
  EXPECT_EQ(opening(at + "/folder"), "save: " + at +
                                         "/folder can't be written, because it is a folder\n"
                                         "  hint: add a file name");
  EXPECT_EQ(opening(at + "/"), "save: " + at +
                                   "/ can't be written, because it names a folder\n"
                                   "  hint: add a file name");
  EXPECT_EQ(opening(at + "/pipe"),
            "save: " + at + "/pipe can't be written, because it is a pipe, not a regular file");
  EXPECT_EQ(opening("/dev/null"),
            "save: /dev/null can't be written, because it is a device, not a regular file");
  EXPECT_EQ(
      opening(at + "/round"),
      "save: " + at + "/round can't be written, it is a symbolic link that leads back to itself");
}

TEST(AtomicFile, AMissingFolderIsNamed) {
  const ScratchFolder folder;
  const std::string at = folder.path().string();
  put(folder / "file", "x");
  EXPECT_EQ(error_of([&] { AtomicFile file(folder / "no/a.bin"); }),
            "save: " + at + "/no/a.bin can't be written, because " + at +
                "/no does not exist\n  hint: make the folder first");
  EXPECT_EQ(
      error_of([&] { AtomicFile file(folder / "file/a.bin"); }),
      "save: " + at + "/file/a.bin can't be written, because " + at + "/file is not a folder");
}

TEST(AtomicFile, ANameThatIsTooLongIsRefused) {
  const ScratchFolder folder;
  const std::string path = (folder / std::string(256, 'n')).string();
  EXPECT_EQ(error_of([&] { save_text(path, "x"); }),
            "save: " + path + " can't be written, the name is too long");
}

TEST(AtomicFile, AFolderWithoutPermissionIsRefused) {
  const ScratchFolder folder;
  const std::string path = (folder / "closed/a.bin").string();
  std::filesystem::create_directory(folder / "closed");
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod((folder / "closed").c_str(), 0555), 0);
  const int status = in_child([&] {
    become_nobody();
    return expect_in_child(error_of([&] { AtomicFile file(path); }),
                           "save: " + path +
                               " can't be written, you have no permission to write there\n"
                               "  hint: write to a folder of your own");
  });
  if (status == skipped) GTEST_SKIP() << "root could not become nobody";
  EXPECT_EQ(status, 0);
}

TEST(AtomicFile, AWriteProtectedFileIsNotReplaced) {
  const ScratchFolder folder;
  const std::string path = (folder / "a.bin").string();
  put(path, "old");
  ASSERT_EQ(chmod(folder.path().c_str(), 0777), 0);
  ASSERT_EQ(chmod(path.c_str(), 0444), 0);
  const int status = in_child([&] {
    become_nobody();
    return expect_in_child(error_of([&] { save_text(path, "new"); }),
                           "save: " + path +
                               " can't be written, because the file there is write-protected\n"
                               "  hint: `chmod u+w` it, or choose another name");
  });
  if (status == skipped) GTEST_SKIP() << "root could not become nobody";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(path), "old");
}

TEST(AtomicFile, AKilledWriterLeavesTheOldFileAlone) {
  const ScratchFolder folder;
  put(folder / "a.bin", "old");
  int written[2];
  ASSERT_EQ(pipe(written), 0);
  const pid_t child = fork();
  if (child == 0) {
    AtomicFile file(folder / "a.bin");
    const std::string block(1 << 16, 'x');
    for (int i = 0; i < 4; ++i) file.write(bytes_of(block));
    if (write(written[1], "!", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(written[1]);
  char sign = 0;
  EXPECT_EQ(read(written[0], &sign, 1), 1);  // the child is in the middle of writing
  close(written[0]);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content_of(folder / "a.bin"), "old");
  if (!has_nameless_files(folder)) GTEST_SKIP() << "no O_TMPFILE here: a stray file is expected";
  EXPECT_EQ(folder.names(), Names{"a.bin"});
}

// Without /proc a nameless file can't be named, so that a named temporary takes its place: a
// process without /proc is one whose root is the scratch folder.
TEST(AtomicFile, WithoutProcANamedTemporaryServes) {
  const ScratchFolder folder;
  put(folder / "replaced", "old");
  put(folder / "kept", "old");
  const auto body = [&]() -> int {
    if (!become_root_of(0)) return skipped;
    if (chroot(folder.path().c_str()) != 0 || chdir("/") != 0) return skipped;
    {
      AtomicFile aborted("kept");
      aborted.write(bytes_of("new"));
      int hidden = 0;
      for (const auto& entry : std::filesystem::directory_iterator("/")) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(".kept.") && name.ends_with(".tmp")) ++hidden;
      }
      if (hidden != 1) return 2;
    }
    save_text("replaced", "new");
    save_text("fresh", "new");
    return 0;
  };
  const int status = in_child(body);
  if (status == skipped) GTEST_SKIP() << "chroot is not allowed here";
  ASSERT_EQ(status, 0);
  EXPECT_EQ(folder.names(), (Names{"fresh", "kept", "replaced"}));
  EXPECT_EQ(content_of(folder / "fresh"), "new");
  EXPECT_EQ(content_of(folder / "replaced"), "new");
  EXPECT_EQ(content_of(folder / "kept"), "old");
}

TEST(AtomicFile, AFileSizeLimitSaysHowFarItGot) {
  const ScratchFolder folder;
  const std::string path = (folder / "a.bin").string();
  put(path, "old");
  const int status = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return skipped;
    const std::string block(8'000, 'x');
    return expect_in_child(error_of([&] {
                             AtomicFile file(path);
                             file.write(bytes_of(block));
                             file.write(bytes_of(block));
                           }),
                           "save: " + path +
                               " can't be written, the file may not grow that large here: 10000 "
                               "bytes of 16000 could be written\n"
                               "  hint: the limit is that of the file system or of `ulimit -f`");
  });
  if (status == skipped) GTEST_SKIP() << "no file size limit can be set";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content_of(path), "old");
  EXPECT_EQ(folder.names(), Names{"a.bin"});
}

TEST(AtomicFile, TooManyOpenFilesAreNamed) {
  const ScratchFolder folder;
  const std::string path = (folder / "a.bin").string();
  const int status = in_child([&] {
    const rlimit limit{3, 3};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return skipped;
    return expect_in_child(
        error_of([&] { AtomicFile file(path); }),
        "save: " + path +
            " can't be written, too many files are open\n"
            "  hint: raise the limit with `ulimit -n`, or write fewer files at once");
  });
  if (status == skipped) GTEST_SKIP() << "no limit on descriptors can be set";
  EXPECT_EQ(status, 0);
}

// Mounts a disk of 256 KiB at `at` for this process alone; false where that is not allowed.
bool mount_small_disk(const std::filesystem::path& at) {
  return become_root_of(CLONE_NEWNS) &&
         mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("small", at.c_str(), "tmpfs", 0, "size=256k") == 0;
}

TEST(AtomicFile, AFullDiskSaysHowFarItGotAndKeepsTheOldFile) {
  const ScratchFolder folder;
  const std::string path = (folder / "a.bin").string();
  const int status = in_child([&] {
    if (!mount_small_disk(folder.path())) return skipped;
    save_text(path, "old");
    const std::string block(65'536, 'x');
    // The old file takes one page of 4 KiB, so that 63 of 64 pages are free.
    int wrong = expect_in_child(error_of([&] {
                                  AtomicFile file(path);
                                  for (int i = 0; i < 5; ++i) file.write(bytes_of(block));
                                }),
                                "save: " + path +
                                    " can't be written, the disk is full: 258048 bytes of 262144 "
                                    "could be written\n"
                                    "  hint: free some space, or write to another disk");
    wrong += expect_in_child(error_of([&] {
                               AtomicFile file(path);
                               file.reserve(1'000'000);
                             }),
                             "save: " + path +
                                 " can't be written, the disk is full: it takes 1000000 bytes, "
                                 "and 258048 are free\n"
                                 "  hint: free some space, or write to another disk");
    wrong += expect_in_child(content_of(path), "old");
    wrong += folder.names() == Names{"a.bin"} ? 0 : 1;
    return wrong;
  });
  if (status == skipped) GTEST_SKIP() << "a small disk can't be mounted here";
  EXPECT_EQ(status, 0);
}

TEST(AtomicFile, AReadOnlyFileSystemIsNamed) {
  const ScratchFolder folder;
  const std::string path = (folder / "a.bin").string();
  const int status = in_child([&] {
    if (!mount_small_disk(folder.path())) return skipped;
    if (mount("small", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      return skipped;
    }
    return expect_in_child(error_of([&] { AtomicFile file(path); }),
                           "save: " + path +
                               " can't be written, the file system is read-only\n"
                               "  hint: write to a folder of your own");
  });
  if (status == skipped) GTEST_SKIP() << "a small disk can't be mounted here";
  EXPECT_EQ(status, 0);
}

TEST(AtomicFile, ANewFileTakesNoOthersPlace) {
  const ScratchFolder folder;
  const std::filesystem::path target = folder / "x";
  AtomicFile first(target);
  AtomicFile second(target);
  first.write(bytes_of("first"));
  second.write(bytes_of("second"));
  first.commit_new();
  EXPECT_EQ(testing::thrown_by<FileError>([&] { second.commit_new(); }),
            "save: " + target.string() +
                " can't be written, because it is there by now\n  hint: a result never overwrites "
                "another: remove it, or choose another name");
  EXPECT_EQ(content_of(target), "first");
}

TEST(AtomicFile, AnErrorShowsAPathWholeAndWithoutControlCharacters) {
  const ScratchFolder folder;
  const std::string name = std::string(210, 'x');
  std::filesystem::create_directory(folder / (name + "\x1b[31m"));
  const std::string shown = (folder / name).string() + "\\x1B[31m";
  EXPECT_EQ(
      error_of([&] { AtomicFile file(folder / (name + "\x1b[31m")); }),
      "save: " + shown + " can't be written, because it is a folder\n  hint: add a file name");
  EXPECT_EQ(error_of([&] { AtomicFile file(folder / "\x1b[32m" / "x"); }),
            "save: " + (folder / "\\x1B[32m" / "x").string() + " can't be written, because " +
                (folder / "\\x1B[32m").string() + " does not exist\n  hint: make the folder first");
}

}  // namespace
}  // namespace eckart
