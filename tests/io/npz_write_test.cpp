#include "eckart/io/npz_write.h"

#include "eckart/core/errors.h"
#include "eckart/io/npz.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::is_near;
using testing::ScratchFolder;
using testing::thrown_by;

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(NpzWriter, WhatIsWrittenIsReadBack) {
  const ScratchFolder folder;
  const auto path = folder / "a.npz";
  const auto floats = Tensor<float>::matrix({{1, 2, 3}, {4, 5, -0.5F}});
  const auto doubles = Tensor<double>::vector({1e300, 0.1});
  const Tensor<std::int64_t> number(Shape{}, 7);
  const Tensor<double> none({0, 3});
  NpzWriter writer(path);
  writer.add("floats", floats);
  writer.add("doubles", doubles);
  writer.add("transposed", TensorView<const float>(floats.view()).transpose());
  writer.add("number", number);
  writer.add("none", none);
  writer.commit();
  const MappedFile file = open_mapped(path);
  Findings findings;
  const std::vector<NpzMember> members = read_npz_directory(file, true, findings);
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(members.size(), 5U);
  const NpzFile archive = open_npz(path);
  EXPECT_TRUE(is_near(archive.load<float>("floats"), floats));
  EXPECT_TRUE(is_near(archive.load<double>("doubles"), doubles));
  EXPECT_TRUE(is_near(archive.load<float>("transposed"), Tensor<float>(floats.view().transpose())));
  EXPECT_EQ(archive.load<double>("number").data()[0], 7);
  EXPECT_EQ(to_string(archive.load<double>("none").shape()), "0x3");
}

TEST(NpzWriter, AnArchiveOfNothingHasNoArrays) {
  const ScratchFolder folder;
  NpzWriter writer(folder / "a.npz");
  writer.commit();
  EXPECT_TRUE(open_npz(folder / "a.npz").members().empty());
}

TEST(NpzWriter, TheSameArraysGiveTheSameBytes) {
  const ScratchFolder folder;
  for (const char* const name : {"a.npz", "b.npz"}) {
    NpzWriter writer(folder / name);
    writer.add("x", Tensor<double>({3, 4}, 2.0));
    writer.commit();
  }
  EXPECT_EQ(bytes_of(folder / "a.npz"), bytes_of(folder / "b.npz"));
}

TEST(NpzWriter, WithoutACommitNothingIsThere) {
  const ScratchFolder folder;
  {
    NpzWriter writer(folder / "a.npz");
    writer.add("x", Tensor<double>({3, 4}));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(NpzWriter, RefusesNamesThatAreNoFilesOrTaken) {
  const ScratchFolder folder;
  NpzWriter writer(folder / "a.npz");
  const Tensor<double> x({2});
  writer.add("x", x);
  const auto refusal = [&](const std::string& name) {
    return thrown_by<ArgumentError>([&] { writer.add(name, x); });
  };
  EXPECT_EQ(refusal("x"),
            "save: two arrays of the archive are called \"x\", but each must have a name of its "
            "own");
  EXPECT_EQ(refusal("../x"),
            "save: an array of the archive is called \"../x\", but that is no name of a file\n"
            "  hint: use letters, digits, points and underscores");
  for (const std::string& name : {std::string(), std::string(".."), std::string("a\\b"),
                                  std::string("a\0b", 3), std::string(70'000, 'a')}) {
    EXPECT_NE(refusal(name).find("no name of a file"), std::string::npos);
  }
  // What was refused left no trace.
  writer.add("y", x);
  writer.commit();
  EXPECT_EQ(open_npz(folder / "a.npz").members().size(), 2U);
}

}  // namespace
}  // namespace eckart
