#include "eckart/core/errors.h"
#include "eckart/io/safetensors.h"

#include <csignal>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/io/scratch_folder.h"
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace eckart {
namespace {

using testing::content_of;
using testing::put;
using testing::ScratchFolder;
using Names = std::vector<std::string>;

constexpr Index huge = std::numeric_limits<Index>::max();

std::string golden(const std::string& name) {
  return content_of(ECKART_SOURCE_DIR "/tests/golden/safetensors/" + name + ".safetensors");
}

template <class Error = ArgumentError>
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Tensors whose bytes count up over all of them, as in the golden files: byte i is i % 251.
class Counted {
 public:
  explicit Counted(std::vector<TensorPlan> plans) : plans_(std::move(plans)) {
    std::uint64_t n = 0;
    for (const TensorPlan& plan : plans_) n += stored_bytes(plan.dtype, plan.shape.count()).value();
    for (std::uint64_t i = 0; i < n; ++i) bytes_.push_back(static_cast<std::byte>(i % 251));
    std::size_t at = 0;
    for (const TensorPlan& plan : plans_) {
      const std::size_t size = stored_bytes(plan.dtype, plan.shape.count()).value();
      tensors_.push_back({plan, std::span(bytes_).subspan(at, size)});
      at += size;
    }
  }
  const std::vector<TensorPlan>& plans() const { return plans_; }
  const std::vector<TensorBytes>& tensors() const { return tensors_; }

 private:
  std::vector<TensorPlan> plans_;
  std::vector<std::byte> bytes_;
  std::vector<TensorBytes> tensors_;
};

TEST(SafetensorsWriter, ASmallFileIsThisToTheByte) {
  const ScratchFolder folder;
  const Counted counted({{"b", Dtype::u8, {2}}, {"a", Dtype::i16, {1, 1}}});
  save_safetensors(folder / "x.safetensors", counted.tensors());
  const std::string header = R"({"a":{"dtype":"I16","shape":[1,1],"data_offsets":[0,2]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})";
  ASSERT_EQ(header.size(), 108U);
  const std::string length("\x70\0\0\0\0\0\0\0", 8);  // 112: the next multiple of 8
  EXPECT_EQ(content_of(folder / "x.safetensors"),
            length + header + "    " + std::string("\x02\x03\x00\x01", 4));
}

TEST(SafetensorsWriter, AFileWithoutTensorsIsAsTheReferenceHasIt) {
  const ScratchFolder folder;
  save_safetensors(folder / "x.safetensors", {});
  EXPECT_EQ(content_of(folder / "x.safetensors"), golden("empty"));
}

TEST(SafetensorsWriter, MetadataComesFirstAsTheReferenceHasIt) {
  const ScratchFolder folder;
  const Counted counted({{"w", Dtype::f32, {2, 3}}});
  save_safetensors(folder / "x.safetensors", counted.tensors(), {{"format", "pt"}});
  EXPECT_EQ(content_of(folder / "x.safetensors"), golden("metadata"));
}

TEST(SafetensorsWriter, MetadataIsSortedAndEscaped) {
  const ScratchFolder folder;
  save_safetensors(folder / "x.safetensors", {}, {{"b", "two\nlines"}, {"a", "\"q\" \x01"}});
  EXPECT_EQ(content_of(folder / "x.safetensors").substr(8),
            R"({"__metadata__":{"a":"\"q\" \u0001","b":"two\nlines"}}  )");
}

TEST(SafetensorsWriter, EveryDtypeStandsWhereTheReferencePutsIt) {
  const ScratchFolder folder;
  // F6 is missing: the reference's Python side has no name for it.
  const std::vector<Dtype> dtypes = {
      Dtype::boolean, Dtype::f4,      Dtype::u8,          Dtype::i8,          Dtype::f8_e5m2,
      Dtype::f8_e4m3, Dtype::f8_e8m0, Dtype::f8_e4m3fnuz, Dtype::f8_e5m2fnuz, Dtype::i16,
      Dtype::u16,     Dtype::f16,     Dtype::bf16,        Dtype::i32,         Dtype::u32,
      Dtype::f32,     Dtype::c64,     Dtype::f64,         Dtype::i64,         Dtype::u64};
  std::vector<TensorPlan> plans;
  for (const Dtype dtype : dtypes) {
    const std::string number = std::to_string(plans.size());
    plans.push_back({(plans.size() < 10 ? "t0" : "t") + number, dtype, {2, 3, 2}});
  }
  const Counted counted(plans);
  save_safetensors(folder / "x.safetensors", counted.tensors());
  EXPECT_EQ(content_of(folder / "x.safetensors"), golden("every_dtype"));
}

TEST(SafetensorsWriter, NamesAndShapesAreWrittenAsTheReferenceHasThem) {
  const ScratchFolder folder;
  const Counted counted({
      {"scalar", Dtype::f32, {}},
      {"none", Dtype::f32, {0}},
      {"no_rows", Dtype::f32, {3, 0, 2}},
      {"layers.10.w", Dtype::f32, {1}},
      {"layers.2.w", Dtype::f32, {1}},
      {"Z", Dtype::f32, {1}},
      {"a", Dtype::f32, {1}},
      {"", Dtype::f32, {1}},
      {"\u00e9", Dtype::f32, {1}},
      {"\U0001f600", Dtype::f32, {1}},
      {"quote \" slash \\ / bell \a back \b feed \f line \n return \r tab \t del \x7f",
       Dtype::i8,
       {3}},
      {"flags", Dtype::boolean, {5}},
  });
  save_safetensors(folder / "x.safetensors", counted.tensors());
  EXPECT_EQ(content_of(folder / "x.safetensors"), golden("shapes_and_names"));
}

TEST(SafetensorsWriter, TheLayoutIsKnownBeforeTheBytes) {
  const ScratchFolder folder;
  const SafetensorsWriter writer(folder / "x.safetensors",
                                 {{"b", Dtype::u8, {2}}, {"a", Dtype::i16, {1, 1}}});
  ASSERT_EQ(writer.layout().size(), 2U);
  EXPECT_EQ(writer.layout()[0].name, "a");
  EXPECT_EQ(writer.layout()[0].begin, 120U);
  EXPECT_EQ(writer.layout()[0].end, 122U);
  EXPECT_EQ(writer.layout()[1].name, "b");
  EXPECT_EQ(writer.layout()[1].end, 124U);
}

TEST(SafetensorsWriter, PiecesComeInAnyOrderAndFromSeveralThreads) {
  const ScratchFolder folder;
  const Counted counted({{"a", Dtype::u8, {1000}}, {"b", Dtype::f32, {250}}});
  save_safetensors(folder / "whole.safetensors", counted.tensors());
  SafetensorsWriter writer(folder / "pieces.safetensors", counted.plans());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t piece = 100; piece-- > 0;) {
        if (piece % 4 != t) continue;
        for (const TensorBytes& tensor : counted.tensors()) {
          writer.write(tensor.plan.name, tensor.bytes.subspan(piece * 10, 10), piece * 10);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.commit();
  EXPECT_EQ(content_of(folder / "pieces.safetensors"), content_of(folder / "whole.safetensors"));
}

TEST(SafetensorsWriter, AWriterCanBeMoved) {
  const ScratchFolder folder;
  const Counted counted({{"a", Dtype::u8, {4}}});
  SafetensorsWriter first(folder / "x.safetensors", counted.plans());
  SafetensorsWriter second = std::move(first);
  second.write("a", counted.tensors()[0].bytes);
  second.commit();
  EXPECT_TRUE(content_of(folder / "x.safetensors").ends_with(std::string("\0\1\2\3", 4)));
}

TEST(SafetensorsWriter, AMissingPieceIsNotMadeUpForByWritingAnotherTwice) {
  const ScratchFolder folder;
  put(folder / "x.safetensors", "old");
  const std::vector<std::byte> bytes(8);
  SafetensorsWriter writer(folder / "x.safetensors",
                           {{"w", Dtype::f32, {4}}, {"empty", Dtype::f32, {0}}});
  writer.write("w", bytes, 0);
  writer.write("w", bytes, 4);  // 12 of 16 bytes, 4 of them twice
  writer.write("w", {}, 16);
  EXPECT_EQ(error_of([&] { writer.commit(); }),
            "save: of tensor \"w\" 12 of 16 bytes were written, but a file holds whole tensors");
  EXPECT_EQ(content_of(folder / "x.safetensors"), "old");
  writer.write("w", bytes, 8);
  writer.commit();
  EXPECT_TRUE(content_of(folder / "x.safetensors").ends_with(std::string(16, '\0')));
}

TEST(SafetensorsWriter, BytesOutsideATensorAreRefused) {
  const ScratchFolder folder;
  SafetensorsWriter writer(folder / "x.safetensors", {{"w", Dtype::f32, {4}}});
  const std::vector<std::byte> bytes(8);
  EXPECT_EQ(error_of([&] { writer.write("w", bytes, 9); }),
            "save: tensor \"w\" has 16 bytes, but 8 are to be written from byte 9 on");
  EXPECT_EQ(error_of([&] { writer.write("w", bytes, std::uint64_t{0} - 4); }),
            "save: tensor \"w\" has 16 bytes, but 8 are to be written from byte "
            "18446744073709551612 on");
  EXPECT_EQ(error_of([&] { writer.write("v", bytes); }),
            "save: tensor \"v\" is not one of the planned ones");
}

TEST(SafetensorsWriter, BadNamesAreRefused) {
  const ScratchFolder folder;
  const auto opening = [&](std::vector<TensorPlan> plans) {
    return error_of([&] { SafetensorsWriter(folder / "x.safetensors", plans); });
  };
  EXPECT_EQ(opening({{"w", Dtype::f32, {1}}, {"v", Dtype::f32, {1}}, {"w", Dtype::f16, {2}}}),
            "save: two tensors are named \"w\", but a name stands for one tensor");
  EXPECT_EQ(opening({{"__metadata__", Dtype::f32, {1}}}),
            "save: a tensor is named __metadata__, but that key of the header is for metadata\n"
            "  hint: give the tensor another name");
  EXPECT_EQ(opening({{"w\xff", Dtype::f32, {1}}}),
            "save: the tensor name \"w\\xFF\" is not UTF-8 at byte 1, but a header is UTF-8 text");
  EXPECT_EQ(error_of([&] {
              save_safetensors(folder / "x", {}, {{"k", "\xc0"}});
            }),
            "save: the metadata value \"\\xC0\" is not UTF-8 at byte 0, but a header is UTF-8 "
            "text");
  EXPECT_EQ(folder.names(), Names{});
}

TEST(SafetensorsWriter, SizesThatNoFileCanHaveAreRefused) {
  const ScratchFolder folder;
  const auto opening = [&](std::vector<TensorPlan> plans) {
    return error_of([&] { SafetensorsWriter(folder / "x.safetensors", plans); });
  };
  EXPECT_EQ(opening({{"w", Dtype::f4, {1, 3}}}),
            "save: tensor \"w\" is 1x3 of F4, but a tensor must be a whole number of bytes, less "
            "than 2^61 of them");
  EXPECT_EQ(opening({{"w", Dtype::f32, {huge}}}),
            "save: tensor \"w\" is 9223372036854775807 of F32, but a tensor must be a whole number "
            "of bytes, less than 2^61 of them");
  const Index eighth = Index{1} << 60;
  std::vector<TensorPlan> many;
  many.reserve(8);
  for (int i = 0; i < 8; ++i) many.push_back({std::to_string(i), Dtype::u8, {eighth}});
  EXPECT_EQ(opening(many), "save: the tensors up to \"7\" are larger than any file can be");
  EXPECT_EQ(folder.names(), Names{});
}

TEST(SafetensorsWriter, AHeaderLongerThanReadersTakeIsRefused) {
  const ScratchFolder folder;
  std::string text;
  text.resize(100'000'000, 'x');
  EXPECT_EQ(error_of([&] {
              save_safetensors(folder / "x", {}, {{"k", text}});
            }),
            "save: the header would be longer than the 100000000 bytes that readers take\n"
            "  hint: write several files, or less metadata");
  EXPECT_EQ(folder.names(), Names{});
}

TEST(SafetensorsWriter, BytesThatAreNotThePlansAreRefused) {
  const ScratchFolder folder;
  const std::vector<std::byte> bytes(20);
  EXPECT_EQ(error_of([&] {
              save_safetensors(folder / "x", {{{"w", Dtype::f32, {2, 3}}, bytes}});
            }),
            "save: tensor \"w\" is 2x3 of F32, which takes 24 bytes, but 20 are given");
  EXPECT_EQ(folder.names(), Names{});
}

TEST(PlanShards, EachShardIsFilledInTheGivenOrder) {
  const std::vector<TensorPlan> plans = {{"a", Dtype::u8, {4}}, {"b", Dtype::u8, {6}},
                                         {"c", Dtype::u8, {1}}, {"large", Dtype::u8, {25}},
                                         {"d", Dtype::u8, {0}}, {"e", Dtype::u8, {10}}};
  const std::vector<ShardPlan> shards = plan_shards(plans, {.max_shard_bytes = 10});
  ASSERT_EQ(shards.size(), 4U);
  EXPECT_EQ(shards[0].tensors, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(shards[1].tensors, (std::vector<std::size_t>{2}));
  EXPECT_EQ(shards[2].tensors, (std::vector<std::size_t>{3}));
  EXPECT_EQ(shards[3].tensors, (std::vector<std::size_t>{4, 5}));
  EXPECT_EQ(shards[0].file, "model-00001-of-00004.safetensors");
  EXPECT_EQ(shards[3].file, "model-00004-of-00004.safetensors");
}

TEST(PlanShards, OneShardIsAPlainFile) {
  const std::vector<ShardPlan> shards = plan_shards({{"a", Dtype::f32, {4}}});
  ASSERT_EQ(shards.size(), 1U);
  EXPECT_EQ(shards[0].file, "model.safetensors");
  ASSERT_EQ(plan_shards({}).size(), 1U);
  EXPECT_EQ(plan_shards({})[0].file, "model.safetensors");
}

TEST(PlanShards, AShardOfNoBytesIsRefused) {
  EXPECT_EQ(error_of([] { plan_shards({}, {.max_shard_bytes = 0}); }),
            "save: max_shard_bytes is 0, but a shard holds at least 1 byte");
}

TEST(SaveSharded, TheShardsAndTheIndexAreTheseToTheByte) {
  const ScratchFolder folder;
  const Counted counted(
      {{"b", Dtype::u8, {3}}, {"a", Dtype::u8, {2}}, {"\u00e9\x7f", Dtype::u8, {4}}});
  save_sharded_safetensors(folder.path(), counted.tensors(), {.max_shard_bytes = 5});
  EXPECT_EQ(folder.names(),
            (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                   "model.safetensors.index.json"}));
  EXPECT_EQ(content_of(folder / "model.safetensors.index.json"),
            "{\n"
            "  \"metadata\": {\n"
            "    \"total_size\": 9\n"
            "  },\n"
            "  \"weight_map\": {\n"
            "    \"a\": \"model-00001-of-00002.safetensors\",\n"
            "    \"b\": \"model-00001-of-00002.safetensors\",\n"
            "    \"\\u00e9\\u007f\": \"model-00002-of-00002.safetensors\"\n"
            "  }\n"
            "}\n");
  save_safetensors(folder / "expected", {counted.tensors()[0], counted.tensors()[1]},
                   {{"format", "pt"}});
  EXPECT_EQ(content_of(folder / "model-00001-of-00002.safetensors"),
            content_of(folder / "expected"));
}

TEST(SaveSharded, OneShardHasNoIndex) {
  const ScratchFolder folder;
  const Counted counted({{"a", Dtype::u8, {2}}});
  save_sharded_safetensors(folder.path(), counted.tensors());
  EXPECT_EQ(folder.names(), Names{"model.safetensors"});
}

TEST(SaveSharded, ANameInTwoShardsIsRefused) {
  const ScratchFolder folder;
  const Counted counted({{"a", Dtype::u8, {2}}, {"a", Dtype::u8, {2}}});
  EXPECT_EQ(error_of([&] {
              save_sharded_safetensors(folder.path(), counted.tensors(), {.max_shard_bytes = 2});
            }),
            "save: two tensors are named \"a\", but a name stands for one tensor");
  EXPECT_EQ(folder.names(), Names{});
}

TEST(SaveSharded, ACheckpointOfTheOtherLayoutIsNotHiddenBehind) {
  const ScratchFolder folder;
  const std::string at = folder.path().string();
  const Counted counted({{"a", Dtype::u8, {2}}, {"b", Dtype::u8, {2}}});
  put(folder / "model.safetensors.index.json", "{}");
  EXPECT_EQ(
      error_of<FileError>([&] { save_sharded_safetensors(folder.path(), counted.tensors()); }),
      "save: " + at +
          " holds model.safetensors.index.json, but a checkpoint of one file is to be written "
          "there, and readers would take the old one\n"
          "  hint: remove the old checkpoint, or choose another folder");
  std::filesystem::remove(folder / "model.safetensors.index.json");
  put(folder / "model.safetensors", "old");
  EXPECT_EQ(
      error_of<FileError>([&] {
        save_sharded_safetensors(folder.path(), counted.tensors(), {.max_shard_bytes = 2});
      }),
      "save: " + at +
          " holds model.safetensors, but a checkpoint of several shards is to be written there, "
          "and readers would take the old one\n"
          "  hint: remove the old checkpoint, or choose another folder");
  EXPECT_EQ(folder.names(), Names{"model.safetensors"});
}

// A shard whose place is taken by a folder fails when it is opened: nothing may be left of the
// others.
TEST(SaveSharded, WhatFailsLeavesTheFolderAsItWas) {
  const ScratchFolder folder;
  const Counted counted({{"a", Dtype::u8, {2}}, {"b", Dtype::u8, {2}}});
  put(folder / "model-00001-of-00002.safetensors", "old");
  std::filesystem::create_directory(folder / "model-00002-of-00002.safetensors");
  EXPECT_NE(error_of<FileError>([&] {
              save_sharded_safetensors(folder.path(), counted.tensors(), {.max_shard_bytes = 2});
            }),
            "no error");
  EXPECT_EQ(folder.names(),
            (Names{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}));
  EXPECT_EQ(content_of(folder / "model-00001-of-00002.safetensors"), "old");
}

// The second shard does not fit below the file size limit, after the first one was written.
TEST(SaveSharded, AFailureInTheMiddleLeavesNothing) {
  const ScratchFolder folder;
  const Counted counted({{"a", Dtype::u8, {100}}, {"b", Dtype::u8, {9000}}});
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5'000, 5'000};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(77);
    const std::string error = error_of<FileError>([&] {
      save_sharded_safetensors(folder.path(), counted.tensors(), {.max_shard_bytes = 9'000});
    });
    _exit(error.find("5000 bytes of 9104 could be written") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no file size limit can be set";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(folder.names(), Names{});
}

}  // namespace
}  // namespace eckart
