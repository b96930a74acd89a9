#include "eckart/lora/output_folder.h"

#include "eckart/core/errors.h"

#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/lora/killed_run.h"
#include "tests/thrown.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace eckart {
namespace {

namespace fs = std::filesystem;
using testing::content_of;
using testing::put;
using testing::run_and_kill;
using testing::ScratchFolder;
using testing::thrown_by;
using Names = std::vector<std::string>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Fingerprint fingerprint_of(std::string_view text) {
  Fingerprint made;
  made.add(text);
  return made;
}

TEST(OutputFolder, AppearsWholeAndAlone) {
  const ScratchFolder scratch;
  {
    OutputFolder folder(scratch / "out", fingerprint_of("a"));
    EXPECT_FALSE(folder.is_resumed());
    folder.add_part("layers.0/x", bytes_of("abc"), "{\"rank\":3}");
    EXPECT_TRUE(folder.has_part("layers.0/x"));
    EXPECT_EQ(content_of(folder.part_path("layers.0/x")), "abc");
    EXPECT_EQ(folder.part_note("layers.0/x"), "{\"rank\":3}");
    put(folder.result_path("model.txt"), "done");
    EXPECT_EQ(scratch.names(), Names{"out.partial"});
    folder.commit();
  }
  EXPECT_EQ(scratch.names(), Names{"out"});
  EXPECT_EQ(content_of(scratch / "out/model.txt"), "done");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch / "out"), {}), 1);
}

TEST(OutputFolder, AnEmptyFolderTakesTheResultAlsoThroughALinkOrWithASlash) {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "empty");
  fs::create_directory_symlink("empty", scratch / "link");
  OutputFolder folder(scratch.path() / "link/", fingerprint_of("a"));
  put(folder.result_path("x"), "1");
  folder.commit();
  EXPECT_EQ(scratch.names(), (Names{"empty", "link"}));
  EXPECT_EQ(content_of(scratch / "empty/x"), "1");
}

TEST(OutputFolder, WithoutAFinishedPartNothingStays) {
  const ScratchFolder scratch;
  { const OutputFolder folder(scratch / "out", fingerprint_of("a")); }
  EXPECT_EQ(scratch.names(), Names{});
}

TEST(OutputFolder, AKilledRunIsGoneOnWith) {
  const ScratchFolder scratch;
  run_and_kill([&] {
    static OutputFolder folder(scratch / "out", fingerprint_of("a"));
    folder.add_part("b", bytes_of("second"), "2");
    folder.add_part("a", bytes_of("first"));
    put(folder.result_path("half.txt"), "ha");
  });
  OutputFolder folder(scratch / "out", fingerprint_of("a"));
  EXPECT_TRUE(folder.is_resumed());
  EXPECT_EQ(folder.parts(), (Names{"b", "a"}));
  EXPECT_EQ(folder.part_note("b"), "2");
  EXPECT_EQ(content_of(folder.part_path("a")), "first");
  EXPECT_FALSE(fs::exists(folder.result_path("half.txt")));
  folder.add_part("c", bytes_of("third"));
  folder.commit();
  EXPECT_EQ(scratch.names(), Names{"out"});
}

TEST(OutputFolder, PartsThatLieInTheResultAreFoundThereAgain) {
  const ScratchFolder scratch;
  run_and_kill([&] {
    static OutputFolder folder(scratch / "out", fingerprint_of("a"));
    put(folder.result_path("model.txt"), "ha");
    folder.note_part("w", "2 bytes");
  });
  OutputFolder folder(scratch / "out", fingerprint_of("a"));
  EXPECT_TRUE(folder.is_resumed());
  EXPECT_EQ(folder.part_note("w"), "2 bytes");
  EXPECT_EQ(content_of(folder.result_path("model.txt")), "ha");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { folder.part_path("w"); }),
            "output folder: the part w lies in the result");
  folder.commit();
  EXPECT_EQ(content_of(scratch / "out/model.txt"), "ha");
}

TEST(OutputFolder, DiscardedWorkIsGone) {
  const ScratchFolder scratch;
  {
    OutputFolder folder(scratch / "out", fingerprint_of("a"));
    folder.add_part("a", bytes_of("a"));
    folder.note_part("b", "in the result");
    folder.discard();
    EXPECT_EQ(scratch.names(), Names{});
  }
  EXPECT_EQ(scratch.names(), Names{});
}

TEST(OutputFolder, OneThatWasDiscardedLeavesTheNextRunsFolderAlone) {
  const ScratchFolder scratch;
  auto first = std::make_unique<OutputFolder>(scratch / "out", fingerprint_of("a"));
  first->discard();
  const OutputFolder second(scratch / "out", fingerprint_of("b"));
  first.reset();
  EXPECT_EQ(scratch.names(), Names{"out.partial"});
}

TEST(OutputFolder, WhatNoLaterRunCouldEndIsDiscardedAndAllElseKept) {
  const ScratchFolder scratch;
  for (const bool is_hopeless : {false, true}) {
    OutputFolder folder(scratch / "out", fingerprint_of("a"));
    const auto write = [&] {
      folder.add_part("p", bytes_of("1"));
      if (is_hopeless) throw std::invalid_argument("no number");
      throw std::runtime_error("disk full");
    };
    EXPECT_THROW(folder.fill(write), std::exception);
    EXPECT_EQ(scratch.names(), is_hopeless ? Names{} : Names{"out.partial"});
  }
}

TEST(OutputFolder, ATornLineOrAPartThatDoesNotFitIsMadeAgain) {
  const ScratchFolder scratch;
  const fs::path partial = scratch / "out.partial";
  {
    OutputFolder folder(scratch / "out", fingerprint_of("a"));
    for (const char* name : {"a", "b", "c"}) folder.add_part(name, bytes_of(name));
  }
  const std::string manifest = content_of(partial / "manifest.jsonl");
  put(partial / "manifest.jsonl", manifest.substr(0, manifest.size() - 5));
  put(partial / "parts/1", "x");
  {
    OutputFolder folder(scratch / "out", fingerprint_of("a"));
    EXPECT_EQ(folder.parts(), Names{"b"});
    folder.add_part("a", bytes_of("again"));
    EXPECT_EQ(content_of(folder.part_path("b")), "b");
  }
  OutputFolder folder(scratch / "out", fingerprint_of("a"));
  EXPECT_EQ(folder.parts(), (Names{"b", "a"}));
  EXPECT_EQ(content_of(folder.part_path("a")), "again");
}

TEST(OutputFolder, APartCanBeReplaced) {
  const ScratchFolder scratch;
  OutputFolder folder(scratch / "out", fingerprint_of("a"));
  folder.add_part("a", bytes_of("old"));
  folder.add_part("a", bytes_of("new"));
  EXPECT_EQ(folder.parts(), Names{"a"});
  EXPECT_EQ(content_of(folder.part_path("a")), "new");
}

TEST(OutputFolder, OtherInputsOrOptionsAreRefused) {
  const ScratchFolder scratch;
  OutputFolder(scratch / "out", fingerprint_of("a")).add_part("p", bytes_of("1"));
  const std::string partial = (scratch / "out.partial").string();
  EXPECT_EQ(
      thrown_by<FileError>([&] { OutputFolder(scratch / "out", fingerprint_of("b")); }),
      "save: " + (scratch / "out").string() + " can't be written, because " + partial +
          " holds the unfinished work of a run with other inputs or options\n  hint: remove " +
          partial + ", or choose another name");
  EXPECT_TRUE(OutputFolder(scratch / "out", fingerprint_of("a")).has_part("p"));
}

TEST(OutputFolder, TwoRunsDoNotShareIt) {
  const ScratchFolder scratch;
  OutputFolder first(scratch / "out", fingerprint_of("a"));
  EXPECT_EQ(thrown_by<FileError>([&] { OutputFolder(scratch / "out", fingerprint_of("a")); }),
            "save: " + (scratch / "out").string() +
                " can't be written, because another run is writing it now\n  hint: wait until it "
                "has ended, or choose another name");
  first.add_part("p", bytes_of("1"));
  EXPECT_TRUE(first.has_part("p"));
}

TEST(OutputFolder, NothingIsOverwritten) {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "full");
  put(scratch / "full/x", "1");
  put(scratch / "file", "1");
  fs::create_directory(scratch / "alien.partial");
  put(scratch / "alien.partial/letter.txt", "1");
  const auto refusal = [&](const char* name) {
    return thrown_by<FileError>([&] { OutputFolder(scratch / name, fingerprint_of("a")); });
  };
  const auto begin = [&](const char* name) {
    return "save: " + (scratch / name).string() + " can't be written, because ";
  };
  EXPECT_EQ(refusal("full"),
            begin("full") +
                "it is there already and not empty\n  hint: a result never overwrites "
                "another: remove it, or choose another name");
  EXPECT_EQ(refusal("file"),
            begin("file") + "a file of that name is there\n  hint: choose another name");
  EXPECT_EQ(refusal("no/out"), begin("no/out") + (scratch / "no").string() +
                                   " does not exist\n  hint: make the folder first");
  EXPECT_EQ(refusal("alien"),
            begin("alien") + (scratch / "alien.partial").string() +
                ", which it is made in, is something else\n  hint: remove or rename that, or "
                "choose another name");
  EXPECT_EQ(scratch.names(), (Names{"alien.partial", "file", "full"}));
}

TEST(OutputFolder, AFullDiskIsAnErrorAndThePartIsNotListed) {
  const ScratchFolder scratch;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    OutputFolder folder(scratch / "out", fingerprint_of("a"));
    folder.add_part("small", bytes_of("1"));
    try {
      folder.add_part("large", bytes_of(std::string(100'000, 'x')));
    } catch (const FileError& error) {
      const bool is_right =
          error.message().find("the file may not grow that large here") != std::string::npos &&
          !folder.has_part("large");
      _exit(is_right ? 0 : 1);
    }
    _exit(2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const OutputFolder folder(scratch / "out", fingerprint_of("a"));
  EXPECT_EQ(folder.parts(), Names{"small"});
}

TEST(OutputFolder, RoomIsKnownBeforeTheWork) {
  const ScratchFolder scratch;
  const OutputFolder folder(scratch / "out", fingerprint_of("a"));
  folder.check_room(1);
  const std::string said = thrown_by<FileError>([&] { folder.check_room(std::uint64_t{1} << 62); });
  EXPECT_NE(said.find("the disk is full: what is kept on the way takes 4611686018427387904 bytes, "
                      "and "),
            std::string::npos)
      << said;
}

TEST(OutputFolder, AskingForAPartThatThereIsNotIsAnError) {
  const ScratchFolder scratch;
  const OutputFolder folder(scratch / "out", fingerprint_of("a"));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { folder.part_note("x"); }),
            "output folder: there is no part x");
}

TEST(Fingerprint, TellsTextsAndFilesApart) {
  const ScratchFolder scratch;
  put(scratch / "a", "1234567890");
  const auto of_file = [&] {
    Fingerprint made;
    made.add_file(scratch / "a");
    return made.text();
  };
  const std::string before = of_file();
  EXPECT_EQ(before.size(), 32);
  EXPECT_EQ(of_file(), before);
  put(scratch / "a", "1234567891");
  EXPECT_NE(of_file(), before);
  EXPECT_NE(fingerprint_of("ab").text(), fingerprint_of("a").text());
  Fingerprint two;
  two.add("a");
  two.add("b");
  EXPECT_NE(two.text(), fingerprint_of("ab").text());
}

TEST(Fingerprint, OfALargeFileTheHeaderAndTheTimeCount) {
  const ScratchFolder scratch;
  std::string content(3 << 20, 'x');
  content.replace(0, 10, std::string("\x02\0\0\0\0\0\0\0{}", 10));
  put(scratch / "a", content);
  const auto time = fs::last_write_time(scratch / "a");
  const auto of_file = [&] {
    Fingerprint made;
    made.add_file(scratch / "a");
    return made.text();
  };
  const std::string before = of_file();
  content[9] = ']';  // of the header
  put(scratch / "a", content);
  fs::last_write_time(scratch / "a", time);
  const std::string changed = of_file();
  EXPECT_NE(changed, before);
  fs::last_write_time(scratch / "a", time + std::chrono::seconds(1));
  EXPECT_NE(of_file(), changed);
}

}  // namespace
}  // namespace eckart
