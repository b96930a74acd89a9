#include "eckart/io/npz.h"

#include "eckart/core/errors.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/io/zip_builder.h"
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif
#else
constexpr bool is_sanitized = false;
#endif

namespace eckart {
namespace {

using testing::content_of;
using testing::crc_of;
using testing::end_record;
using testing::little_endian;
using testing::put;
using testing::ScratchFolder;
using testing::zip_archive;
using testing::zip_member;
using testing::zip_parts;
using testing::ZipMember;
using testing::ZipParts;
using std::string_literals::operator""s;

const std::string golden = ECKART_SOURCE_DIR "/tests/golden/npy/";

// A float array of one axis with the values 0, 1, 2, …
std::string npy(std::size_t n) {
  std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(n) + ",), }";
  header.resize(117, ' ');
  std::string file = "\x93NUMPY\x01\0"s + little_endian(118, 2) + header + '\n';
  for (std::size_t i = 0; i < n; ++i) {
    const auto value = static_cast<float>(i);
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return file;
}

std::string described(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings.all()) {
    if (!text.empty()) text += '\n';
    text += (finding.severity == Severity::error ? "error " : "warning ") + finding.rule;
    if (!finding.tensor.empty()) text += " (" + finding.tensor + ")";
    if (finding.begin) {
      text += " [" + std::to_string(*finding.begin) + "," + std::to_string(*finding.end) + ")";
    }
    text += ": " + finding.message;
    if (!finding.hint.empty()) text += " | " + finding.hint;
  }
  return text;
}

struct Read {
  std::string findings;
  std::vector<std::string> names;
};

Read read(const std::string& archive, bool verify = true, const NpzLimits& limits = {}) {
  const ScratchFolder folder;
  put(folder / "x.npz", archive);
  const MappedFile file = open_mapped(folder / "x.npz");
  Findings findings;
  Read result;
  for (const NpzMember& member : read_npz_directory(file, verify, findings, limits)) {
    result.names.push_back(member.name);
  }
  result.findings = described(findings);
  return result;
}

std::string found_in(const std::vector<ZipMember>& members) {
  return read(zip_archive(members)).findings;
}

// The same for one member that `change` makes false in one way.
std::string found_after(const std::function<void(ZipMember&)>& change, bool deflate = false) {
  ZipMember member = zip_member("w.npy", npy(8), deflate);
  change(member);
  return found_in({member});
}

std::vector<float> elements(const Tensor<float>& tensor) {
  return {tensor.data(), tensor.data() + tensor.count()};
}

template <class Error = FormatError>
std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Npz, ArchivesOfNumpyAreReadStoredDeflatedAndStreamed) {
  for (const char* const name : {"stored.npz", "deflated.npz", "streamed.npz"}) {
    Findings findings;
    read_npz_directory(open_mapped(golden + name), true, findings);
    EXPECT_EQ(described(findings), "") << name;

    const NpzFile npz = open_npz(golden + name);
    ASSERT_EQ(npz.members().size(), 6U) << name;
    EXPECT_EQ(npz.members()[0].name, "w");
    EXPECT_EQ(npz.members()[0].header.shape, (Shape{2, 3}));
    EXPECT_EQ(npz.members()[0].bytes, 152U);
    EXPECT_EQ(npz.members()[0].deflated, name != "stored.npz"s);
    EXPECT_EQ(npz.members()[1].name, "layer/b");
    EXPECT_EQ(elements(npz.load<float>("w")), (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5}));
    EXPECT_EQ(elements(npz.load<float>("layer/b")), (std::vector<float>{-1, 0, 1}));
    EXPECT_EQ(elements(npz.load<float>("flags")), (std::vector<float>{1, 0}));
    EXPECT_EQ(elements(npz.load<float>("fortran")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(elements(npz.load<float>("zeros")), std::vector<float>(2000, 0.0F));
    const Tensor<double> scalar = npz.load<double>("scalar");
    EXPECT_EQ(scalar.rank(), 0);
    EXPECT_EQ(*scalar.data(), 2.5);
  }
}

TEST(Npz, AnUnknownNameListsThoseThatAreThere) {
  const NpzFile npz = open_npz(golden + "stored.npz");
  EXPECT_EQ(error_of<ArgumentError>([&] { npz.load<float>("W"); }),
            "npz: " + golden +
                "stored.npz has no array \"W\"\n"
                "  hint: it has w, layer/b, scalar, flags, fortran, zeros");
}

TEST(Npz, AnEmptyArchiveHasNoArrays) {
  const ScratchFolder folder;
  put(folder / "x.npz", zip_archive({}));
  const NpzFile npz = open_npz(folder / "x.npz");
  EXPECT_TRUE(npz.members().empty());
  EXPECT_NE(error_of<ArgumentError>([&] { npz.load<float>("w"); }).find("it has none at all"),
            std::string::npos);
}

TEST(Npz, RawBytesOfAMemberAreReadAsTheDtypeAskedFor) {
  std::string bf16 = npy(1);
  bf16.replace(bf16.find("<f4"), 3, "<V2");
  bf16.replace(bf16.size() - 4, 4, "\xc0\x3f");
  const ScratchFolder folder;
  put(folder / "x.npz", zip_archive({zip_member("w.npy", bf16)}));
  const NpzFile npz = open_npz(folder / "x.npz");
  EXPECT_EQ(elements(npz.load<float>("w", {.reinterpret = Dtype::bf16})),
            (std::vector<float>{1.5}));
  EXPECT_EQ(error_of([&] { npz.load<float>("w"); }),
            (folder / "x.npz").string() +
                ": tensor w: the elements are raw bytes (descr <V2), whose meaning is not stated\n"
                "  hint: ml_dtypes saves bfloat16 so; read it with NpyOptions::reinterpret = BF16");
}

TEST(Npz, DeflatedElementsAreTheSameInPlaceAndConverted) {
  constexpr std::size_t n = 50'000;  // several pieces of 64 KiB
  std::string matrix = npy(6);
  matrix.replace(matrix.find("False, 'shape': (6,), }"), 26, "True, 'shape': (2, 3), }  ");
  const ScratchFolder folder;
  put(folder / "x.npz",
      zip_archive({zip_member("long.npy", npy(n), true), zip_member("by_columns.npy", matrix, true),
                   zip_member("none.npy", npy(0), true)}));
  const NpzFile npz = open_npz(folder / "x.npz");
  const Tensor<float> floats = npz.load<float>("long");
  const Tensor<double> doubles = npz.load<double>("long");
  ASSERT_EQ(floats.shape(), Shape{n});
  ASSERT_EQ(doubles.shape(), Shape{n});
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(floats.data()[i], static_cast<float>(i));
    ASSERT_EQ(doubles.data()[i], static_cast<double>(i));
  }
  EXPECT_EQ(elements(npz.load<float>("by_columns")), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(npz.load<float>("none").count(), 0);
}

// Loads an array of 128 MiB where 8 MiB are left: the errors of loading it as it is stored and
// converted, one a line.
std::string errors_without_memory() {
  std::string zeros = npy(0);
  zeros.replace(zeros.find("(0,)"), 14, "(33554432,), }");
  zeros.append(std::size_t{128} << 20, '\0');
  const ScratchFolder folder;
  put(folder / "x.npz", zip_archive({zip_member("w.npy", zeros, true)}));
  std::string().swap(zeros);
  const NpzFile npz = open_npz(folder / "x.npz", {.max_ratio = 1100});
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit low = before;
  low.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (8 << 20);
  setrlimit(RLIMIT_AS, &low);
  const std::string in_place = error_of<FileError>([&] { npz.load<float>("w"); });
  const std::string converted = error_of<FileError>([&] { npz.load<double>("w"); });
  setrlimit(RLIMIT_AS, &before);
  return in_place + "\n" + converted + "\n";
}

// In a process of its own: what other tests gave back to the heap would count as memory left.
TEST(NpzDeathTest, AnArrayThatTheMachineHasNoMemoryForIsAnErrorWithItsPath) {
  if (is_sanitized) GTEST_SKIP() << "a sanitizer takes more addresses than any limit leaves";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string error =
      "/x.npz: tensor w: the member inflates to 134217856 bytes, but this machine has not the "
      "memory to "
      "load it\n";
  EXPECT_EXIT((std::fputs(errors_without_memory().c_str(), stderr), std::exit(0)),
              ::testing::ExitedWithCode(0), error + ".*" + error);
}

TEST(Npz, AnErrorShowsAPathWholeAndWithoutControlCharacters) {
  const ScratchFolder folder;
  const std::string name = std::string(200, 'x') + "\x1b.npz";
  put(folder / name, zip_archive({zip_member("w.npy", npy(1))}));
  EXPECT_EQ(error_of<ArgumentError>([&] { open_npz(folder / name).load<float>("v"); }),
            "npz: " + (folder / std::string(200, 'x')).string() +
                "\\x1B.npz has no array \"v\"\n  hint: it has w");
}

TEST(NpzDirectory, WhatIsNoArchiveIsSaidSo) {
  EXPECT_EQ(read("").findings, "error npz_directory [0,0): the file is empty");
  EXPECT_EQ(read("\x01\x02"s).findings,
            "error npz_directory [0,2): the file is not a zip archive: it has no end record");
  EXPECT_TRUE(read("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234\n")
                  .findings.starts_with("error git_lfs_pointer"));
}

TEST(NpzDirectory, ACutArchiveIsRecognised) {
  const std::string archive = zip_archive({zip_member("w.npy", npy(8))});
  EXPECT_EQ(read(archive.substr(0, archive.size() - 1)).findings,
            "error npz_directory [0," + std::to_string(archive.size() - 1) +
                "): the archive's directory, which stands at its end, is missing: the file was cut "
                "off | copy or download it again");
}

TEST(NpzDirectory, ACommentOfAnyLengthMayFollow) {
  for (const std::size_t length : {1U, 100U, 65535U}) {
    const Read result = read(zip_archive({zip_member("w.npy", npy(8))}, std::string(length, 'c')));
    EXPECT_EQ(result.findings, "") << length;
    EXPECT_EQ(result.names, std::vector<std::string>{"w"}) << length;
  }
}

TEST(NpzDirectory, BytesBehindTheEndOrInFrontAreErrors) {
  const std::string archive = zip_archive({zip_member("w.npy", npy(8))});
  const std::string at = std::to_string(archive.size() - 22);
  EXPECT_EQ(read(archive + "xx").findings,
            "error npz_directory [" + at + "," + std::to_string(archive.size() + 2) +
                "): the archive's end record announces a comment of 0 bytes, but 2 follow it");
  const std::string shifted = read("xx" + archive).findings;
  EXPECT_TRUE(shifted.starts_with("error npz_directory")) << shifted;
  EXPECT_NE(shifted.find("but it must reach to the end record at byte"), std::string::npos);
}

TEST(NpzDirectory, FalseCountsAndSizesAreErrors) {
  const ZipParts parts = zip_parts({zip_member("w.npy", npy(8))});
  const std::string body = parts.members + parts.directory;
  const std::uint64_t begin = parts.members.size();
  const std::uint64_t size = parts.directory.size();
  const std::string place =
      " [" + std::to_string(begin) + "," + std::to_string(begin + size) + "): ";
  EXPECT_EQ(read(body + end_record(2, size, begin)).findings,
            "error npz_directory" + place +
                "the directory is said to have 2 members, but its 51 bytes have no room for them");
  EXPECT_EQ(read(body + end_record(0, size, begin)).findings,
            "error npz_directory" + place +
                "the directory says that it has 0 members, but more bytes follow them");
  EXPECT_EQ(read(body + end_record(1, size - 1, begin)).findings,
            "error npz_directory [" + std::to_string(begin + size) + "," +
                std::to_string(begin + size + 22) +
                "): the directory is said to take 50 bytes "
                "from byte 195 on, but it must reach to the end record at byte 246");
  EXPECT_NE(read(body + end_record(1, size, 0xfffffff0)).findings, "");
  std::string parted = body + end_record(1, size, begin);
  parted[body.size() + 4] = 1;
  EXPECT_EQ(read(parted).findings,
            "error npz_directory [246,268): the archive is one of several "
            "parts | join the parts to one archive first");
  std::string broken = body + end_record(1, size, begin);
  broken[begin] = 'X';
  EXPECT_EQ(read(broken).findings,
            "error npz_directory" + place + "member 1 of the directory has no header");
  std::string long_name = body + end_record(1, size, begin);
  long_name[begin + 28] = 100;
  EXPECT_EQ(read(long_name).findings,
            "error npz_directory" + place + "the header of member 1 runs beyond the directory");
}

TEST(NpzDirectory, Zip64IsRead) {
  ZipMember member = zip_member("w.npy", npy(8));
  const std::uint64_t size = member.data.size();
  member.local.bytes = member.local.compressed = 0xffffffff;
  member.local.extra =
      little_endian(1, 2) + little_endian(16, 2) + little_endian(size, 8) + little_endian(size, 8);
  member.central.bytes = member.central.compressed = 0xffffffff;
  member.local_begin = 0xffffffff;
  member.central.extra = little_endian(1, 2) + little_endian(24, 2) + little_endian(size, 8) +
                         little_endian(size, 8) + little_endian(0, 8);
  const ZipParts parts = zip_parts({member});
  const std::string archive =
      parts.members + parts.directory +
      testing::zip64_end_records(1, parts.directory.size(), parts.members.size()) +
      end_record(0xffff, 0xffffffff, 0xffffffff);
  const Read result = read(archive);
  EXPECT_EQ(result.findings, "");
  EXPECT_EQ(result.names, std::vector<std::string>{"w"});

  std::string disagreeing = archive;
  disagreeing[archive.size() - 22 + 10] = 2;
  disagreeing[archive.size() - 22 + 11] = 0;
  EXPECT_NE(read(disagreeing).findings.find("the end record and the zip64 end record disagree"),
            std::string::npos);
  std::string misplaced = archive;
  misplaced[archive.size() - 22 - 12] ^= 1;
  EXPECT_NE(read(misplaced).findings.find("the zip64 end record is not where its locator says"),
            std::string::npos);
}

TEST(NpzDirectory, SaturatedSizesWithoutAZip64FieldAreErrors) {
  EXPECT_NE(found_after([](ZipMember& member) {
              member.central.bytes = 0xffffffff;
            }).find("error npz_directory"),
            std::string::npos);
  EXPECT_NE(found_after([](ZipMember& member) {
              member.central.extra = "abc";
            }).find("the extra fields of member 1 are broken or lack its zip64 sizes"),
            std::string::npos);
  EXPECT_NE(found_after([](ZipMember& member) { member.local.bytes = 0xffffffff; })
                .find("error npz_local_header (w) [195,246): the extra fields of the local header "
                      "are broken or lack its zip64 sizes"),
            std::string::npos);
}

TEST(NpzDirectory, APyTorchCheckpointIsRecognised) {
  for (const char* const name : {"archive/data.pkl", "data.pkl"}) {
    EXPECT_EQ(
        found_in({zip_member(name, "pickle"), zip_member("archive/data/0", "1234")}),
        "error zip_or_pickle: the file is a PyTorch checkpoint, which holds a pickle: loading "
        "one can run any program | convert it to safetensors: "
        "safetensors.torch.save_file(torch.load(path, weights_only=True), "
        "\"model.safetensors\")");
  }
}

TEST(NpzMember, NamesThatLeaveTheirFolderAreRefused) {
  const auto error = [](const std::string& name) {
    ZipMember member = zip_member(name, npy(1));
    const std::string text = found_in({member});
    EXPECT_TRUE(text.starts_with("error npz_name")) << text;
    const std::string marker = "the member's name ";
    return text.substr(text.find(marker) + marker.size());
  };
  const std::string rule = ", but it must be a plain path inside the archive";
  EXPECT_EQ(error("../w.npy"), "\"../w.npy\" leaves its folder" + rule);
  EXPECT_EQ(error("a/../../w.npy"), "\"a/../../w.npy\" leaves its folder" + rule);
  EXPECT_EQ(error(".."), "\"..\" leaves its folder" + rule);
  EXPECT_EQ(error("/w.npy"), "\"/w.npy\" is an absolute path" + rule);
  EXPECT_EQ(error("a\\w.npy"), "\"a\\w.npy\" has a backslash in it" + rule);
  EXPECT_EQ(error("C:w.npy"), "\"C:w.npy\" names a drive" + rule);
  EXPECT_EQ(error(""), "\"\" is empty" + rule);
  EXPECT_EQ(error("a//w.npy"), "\"a//w.npy\" has an empty part" + rule);
  EXPECT_EQ(error("./w.npy"), "\"./w.npy\" has an empty part" + rule);
  EXPECT_EQ(error("w\0.npy"s), "\"w\\x00.npy\" has a NUL in it" + rule);
  EXPECT_EQ(error("w\xff.npy"), "\"w\\xFF.npy\" is not UTF-8" + rule);
}

TEST(NpzMember, ANameThatStandsTwiceIsRefused) {
  EXPECT_EQ(found_in({zip_member("w.npy", npy(1)), zip_member("w.npy", npy(2))}),
            "error npz_duplicate (w) [389,440): two members have this name, and readers differ in "
            "which one they take");
}

TEST(NpzMember, OfSeveralWithOneNameTheFirstIsNoRepeat) {
  std::vector<ZipMember> members;
  for (const char* const name : {"b", "a", "b", "c", "a", "b"}) {
    members.push_back(zip_member(name + ".npy"s, npy(1)));
  }
  const Read result = read(zip_archive(members));
  EXPECT_EQ(result.names, (std::vector<std::string>{"b", "a", "c"}));
  std::string repeats;
  for (std::size_t at = 0; (at = result.findings.find("npz_duplicate (", at)) != std::string::npos;
       ++at) {
    repeats += result.findings[at + 15];
  }
  EXPECT_EQ(repeats, "bab");
}

TEST(NpzMember, EncryptionLinksAndOtherMethodsAreRefused) {
  for (const int bit : {0, 6, 13}) {
    EXPECT_EQ(
        found_after([&](ZipMember& member) {
          member.central.flags = member.local.flags = static_cast<std::uint16_t>(1U << bit);
        }),
        "error npz_encrypted (w) [195,246): the member is encrypted | unpack the archive with "
        "its password and save the arrays again");
  }
  EXPECT_EQ(found_after([](ZipMember& member) { member.attributes = 0120777U << 16; }),
            "error npz_symlink (w) [195,246): the member is a symbolic link, not a file");
  EXPECT_EQ(found_after([](ZipMember& member) { member.attributes = 0010666U << 16; }),
            "error npz_symlink (w) [195,246): the member is a device or a pipe, not a file");
  EXPECT_EQ(found_after([](ZipMember& member) { member.attributes = 0100644U << 16; }), "");
  const auto method = [](std::uint16_t number) {
    return found_after(
        [&](ZipMember& member) { member.central.method = member.local.method = number; });
  };
  const std::string rest =
      ", but only stored and deflated ones are read | save the arrays again with "
      "np.savez_compressed";
  EXPECT_EQ(method(12),
            "error npz_method (w) [195,246): the member is compressed with bzip2" + rest);
  EXPECT_EQ(method(14),
            "error npz_method (w) [195,246): the member is compressed with LZMA" + rest);
  EXPECT_EQ(method(93),
            "error npz_method (w) [195,246): the member is compressed with Zstandard" + rest);
  EXPECT_EQ(method(77),
            "error npz_method (w) [195,246): the member is compressed with method 77" + rest);
}

TEST(NpzMember, TheLocalHeaderMustAgree) {
  const auto disagreement = [](const std::function<void(ZipMember&)>& change) {
    const std::string text = found_after(change);
    const std::string begin =
        "error npz_local_header (w) [195,246): the directory and the local header at byte 0 "
        "disagree about the ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.name = "v.npy"; }), "name");
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.method = 8; }), "method");
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.flags = 1; }), "flags");
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.bytes = 10; }), "size");
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.bytes = 0; }), "size");
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.compressed = 10; }),
            "compressed size");
  EXPECT_EQ(disagreement([](ZipMember& member) { member.local.crc ^= 1; }), "CRC-32");
}

TEST(NpzMember, ALocalHeaderThatIsNotThereIsAnError) {
  EXPECT_EQ(found_after([](ZipMember& member) { member.local_begin = 7; }),
            "error npz_local_header (w) [195,246): the member's local header is said to be at byte "
            "7, but there is none");
  EXPECT_EQ(found_after([](ZipMember& member) { member.local_begin = 0xfffffff0; }),
            "error npz_local_header (w) [195,246): the member's local header is said to be at byte "
            "4294967280, but there is none");
  EXPECT_EQ(
      found_after([](ZipMember& member) {
        member.local.compressed = member.central.compressed = 161;
        member.local.bytes = member.central.bytes = 161;
      }),
      "error npz_local_header (w) [195,246): the member is said to have 161 bytes from byte 0 "
      "on, which would reach into the directory");
}

// Sizes and CRC-32 come behind the data where the writer could not go back.
TEST(NpzMember, EveryFormOfDataDescriptorIsRead) {
  for (const bool marked : {true, false}) {
    for (const int size_bytes : {4, 8}) {
      for (const bool deflate : {true, false}) {
        const std::string text = found_after(
            [&](ZipMember& member) {
              member.central.flags = member.local.flags = 8;
              member.local.crc = member.local.bytes = member.local.compressed = 0;
              member.descriptor = (marked ? "PK\x07\x08"s : ""s) +
                                  little_endian(member.central.crc, 4) +
                                  little_endian(member.central.compressed, size_bytes) +
                                  little_endian(member.central.bytes, size_bytes);
            },
            deflate);
        EXPECT_EQ(text, "") << marked << ' ' << size_bytes << ' ' << deflate;
      }
    }
  }
  EXPECT_EQ(found_after([](ZipMember& member) {
              member.central.flags = member.local.flags = 8;
              member.descriptor = "PK\x07\x08"s + little_endian(member.central.crc ^ 1, 4) +
                                  little_endian(member.central.compressed, 4) +
                                  little_endian(member.central.bytes, 4);
            }),
            "error npz_local_header (w) [211,262): no data descriptor with the directory's sizes "
            "and CRC-32 follows the data");
  EXPECT_EQ(found_after([](ZipMember& member) { member.central.flags = member.local.flags = 8; }),
            "error npz_local_header (w) [195,246): no data descriptor with the directory's sizes "
            "and CRC-32 follows the data");
}

TEST(NpzMember, MembersThatShareBytesAreRefused) {
  const ZipMember inner = zip_member("b.npy", npy(1));
  const std::string inside = zip_parts({inner}).members;
  ZipMember outer = zip_member("a.npy", npy(4) + inside);
  ZipMember second = inner;
  const ZipParts first_parts = zip_parts({outer});
  second.local_begin = static_cast<std::uint32_t>(first_parts.members.size() - inside.size());
  const ZipParts both = zip_parts({outer, second});
  const std::string archive = first_parts.members + both.directory +
                              end_record(2, both.directory.size(), first_parts.members.size());
  const Read result = read(archive);
  EXPECT_EQ(result.findings,
            "error npz_overlap (b) [179,346): the member begins at byte 179, but the one before it "
            "ends at byte 346");
  EXPECT_TRUE(result.names.empty());
}

TEST(NpzMember, MembersThatShareBytesAreRefusedBesideABrokenOneToo) {
  const ZipMember broken = zip_member("../x.npy", npy(1));
  ZipMember inner = zip_member("b.npy", npy(1));
  inner.central.crc = inner.local.crc ^= 1;  // would be found, were the member read
  const std::string inside = zip_parts({inner}).members;
  const ZipMember outer = zip_member("a.npy", npy(4) + inside);
  const ZipParts first_parts = zip_parts({broken, outer});
  inner.local_begin = static_cast<std::uint32_t>(first_parts.members.size() - inside.size());
  const ZipParts all = zip_parts({broken, outer, inner});
  const Read result = read(first_parts.members + all.directory +
                           end_record(3, all.directory.size(), first_parts.members.size()));
  // The broken member takes 30 + 8 + 132 bytes, the one behind it begins 170 later than alone.
  EXPECT_EQ(
      result.findings,
      "error npz_name (../x) [516,570): the member's name \"../x.npy\" leaves its folder, but "
      "it must be a plain path inside the archive\n"
      "error npz_overlap (b) [349,516): the member begins at byte 349, but the one before it "
      "ends at byte 516");
  EXPECT_TRUE(result.names.empty());
}

TEST(NpzMember, BytesThatBelongToNoMemberAreAWarning) {
  ZipParts parts = zip_parts({zip_member("w.npy", npy(1))});
  parts.members += "hidden";
  EXPECT_EQ(read(parts.members + parts.directory +
                 end_record(1, parts.directory.size(), parts.members.size()))
                .findings,
            "warning npz_gap [167,173): 6 bytes belong to no member");
}

TEST(NpzMember, WhatIsNoArrayIsListedAndLeftOut) {
  const Read result = read(zip_archive(
      {zip_member("readme.txt", "hello"), zip_member("w.npy", npy(1)), zip_member("folder/", "")}));
  EXPECT_EQ(result.findings,
            "warning npz_not_an_array (readme.txt) [40,45): the member is not an .npy array and is "
            "left out\n"
            "warning npz_not_an_array (folder/) [249,249): the member is not an .npy array and is "
            "left out");
  EXPECT_EQ(result.names, std::vector<std::string>{"w"});
}

TEST(NpzMember, FindingsOfItsHeaderStandWhereTheyAreInTheArchive) {
  std::string truncated = npy(4);
  truncated.resize(truncated.size() - 4);
  EXPECT_EQ(
      found_in({zip_member("w.npy", truncated)}),
      "error npy_size (w) [163,175): 4 of descr <f4 takes 16 bytes, but 12 follow the header: "
      "4 bytes missing | copy or download it again");
  const ZipMember member = zip_member("w.npy", truncated, true);
  EXPECT_EQ(
      found_in({member}),
      "error npy_size (w) [35," + std::to_string(35 + member.data.size()) +
          "): 4 of descr <f4 takes 16 bytes, but 12 follow the header: 4 bytes missing | copy "
          "or download it again");
}

TEST(NpzMember, SizesThatCannotBeTrueAreRefused) {
  EXPECT_EQ(found_after([](ZipMember& member) { member.central.bytes = member.local.bytes = 9; }),
            "error npz_size (w) [195,246): the member is stored, but its two sizes differ: 160 and "
            "9 bytes");
  ZipMember bomb = zip_member("w.npy", npy(8), true);
  bomb.central.bytes = bomb.local.bytes = 0xfffffffe;
  const std::string size = std::to_string(bomb.data.size());
  EXPECT_EQ(found_in({bomb}), "error npz_size (w) [35," + std::to_string(35 + bomb.data.size()) +
                                  "): the member is said to inflate from " + size +
                                  " to 4294967294 bytes, but deflate reaches at most 1032 to 1");
}

TEST(NpzMember, ItMustInflateToExactlyWhatIsDeclared) {
  const auto with_bytes = [](std::uint32_t bytes) {
    return found_after(
        [&](ZipMember& member) { member.central.bytes = member.local.bytes = bytes; }, true);
  };
  const std::string place =
      " (w) [35," + std::to_string(35 + testing::deflated(npy(8)).size()) + "): ";
  EXPECT_EQ(with_bytes(150),
            "error npz_size" + place +
                "the member inflates to more than the 150 bytes that the directory declares");
  EXPECT_EQ(with_bytes(170),
            "error npz_size" + place +
                "the member inflates to 160 bytes, but not to the 170 bytes that the directory "
                "declares");
  const std::string surplus = found_after(
      [&](ZipMember& member) {
        member.data += "xx";
        member.central.compressed = member.local.compressed += 2;
      },
      true);
  EXPECT_NE(surplus.find("error npz_size"), std::string::npos) << surplus;
  EXPECT_NE(surplus.find("the compressed bytes end after"), std::string::npos) << surplus;
}

TEST(NpzMember, BrokenCompressedBytesAreErrors) {
  const std::string cut = found_after(
      [](ZipMember& member) {
        member.data.resize(member.data.size() - 4);
        member.central.compressed = member.local.compressed -= 4;
      },
      true);
  EXPECT_TRUE(cut.starts_with("error npz_deflate (w) [35,")) << cut;
  EXPECT_NE(cut.find("the compressed bytes end after "), std::string::npos) << cut;
  const std::string broken = found_after([](ZipMember& member) { member.data[0] = '\x07'; }, true);
  EXPECT_TRUE(broken.starts_with("error npz_deflate (w) [35,")) << broken;
  EXPECT_NE(broken.find("the compressed bytes are broken near byte "), std::string::npos) << broken;
  EXPECT_NE(broken.find(": invalid block type"), std::string::npos) << broken;
}

TEST(NpzMember, DamagedBytesAreFoundByTheirCrc) {
  // Longer than what is read for the header, so that only reading it whole tells.
  const auto damage = [](ZipMember& member) { member.central.crc = member.local.crc ^= 1; };
  for (const bool deflate : {false, true}) {
    ZipMember member = zip_member("w.npy", npy(5000), deflate);
    damage(member);
    const std::string archive = zip_archive({member});
    const std::string message = "the bytes have the CRC-32 ";
    EXPECT_NE(read(archive).findings.find("error npz_crc (w) [35,"), std::string::npos);
    EXPECT_NE(read(archive).findings.find(message), std::string::npos);
    EXPECT_EQ(read(archive, false).findings, "");

    const ScratchFolder folder;
    put(folder / "x.npz", archive);
    const NpzFile npz = open_npz(folder / "x.npz");
    char expected[80];
    std::snprintf(expected, sizeof expected, "%08x, but the directory says %08x: they are damaged",
                  crc_of(npy(5000)), crc_of(npy(5000)) ^ 1);
    EXPECT_EQ(error_of([&] { npz.load<float>("w"); }),
              (folder / "x.npz").string() + ": tensor w: " + message + expected);
  }
}

TEST(NpzMember, ARatioThatFillsTheMemoryIsRefusedAboveOneMebibyte) {
  std::string zeros = npy(0);
  zeros.replace(zeros.find("(0,)"), 13, "(1048576,), }");
  zeros.append(std::size_t{4} << 20, '\0');
  const ZipMember member = zip_member("w.npy", zeros, true);
  const std::string archive = zip_archive({member});
  const std::string facts = " (w) [35," + std::to_string(35 + member.data.size()) +
                            "): the member is said to inflate from " +
                            std::to_string(member.data.size()) + " to 4194432 bytes, but ";
  EXPECT_EQ(read(archive).findings,
            "error npz_ratio" + facts +
                "more than 200 to 1 is refused above 1 MiB, since it may be made to fill the "
                "memory | if you trust the archive, save its arrays again with np.savez");
  EXPECT_EQ(read(archive, true, {.max_ratio = 1100}).findings, "");
  EXPECT_EQ(read(archive, true, {.max_member_bytes = 1 << 20}).findings,
            "error npz_size" + facts + "the limit for one member is 1048576");

  std::string small = npy(0);
  small.replace(small.find("(0,)"), 12, "(200000,), }");
  small.append(800'000, '\0');
  EXPECT_EQ(found_in({zip_member("w.npy", small, true)}), "");
}

TEST(NpzMember, ManySmallMembersMayNotFillTheMemoryEither) {
  std::string small = npy(0);
  small.replace(small.find("(0,)"), 12, "(200000,), }");
  small.append(800'000, '\0');
  const ZipMember a = zip_member("a.npy", small, true);
  const std::string archive = zip_archive({a, zip_member("b.npy", small, true)});
  const std::size_t begin = 2 * 35 + a.data.size();
  const Read result = read(archive);
  EXPECT_EQ(result.findings,
            "error npz_ratio (b) [" + std::to_string(begin) + "," +
                std::to_string(begin + a.data.size()) +
                "): the members up to this one inflate from an archive of " +
                std::to_string(archive.size()) +
                " bytes to 1600256, but more than 200 to 1 is refused above 1 MiB, since it may be "
                "made to fill the memory | if you trust the archive, save its arrays again with "
                "np.savez");
  EXPECT_EQ(result.names, std::vector<std::string>{"a"});
  EXPECT_EQ(read(archive, true, {.max_ratio = 1100}).findings, "");
}

TEST(NpzMember, AllMembersTogetherHaveALimitToo) {
  const std::string archive =
      zip_archive({zip_member("a.npy", npy(8)), zip_member("b.npy", npy(8))});
  const Read result = read(archive, true, {.max_total_bytes = 200});
  EXPECT_EQ(result.findings,
            "error npz_size (b) [230,390): the members up to this one inflate to more than 200 "
            "bytes, which is the limit");
  EXPECT_EQ(result.names, std::vector<std::string>{"a"});
}

TEST(OpenNpz, TheFirstBrokenRuleIsThrown) {
  const ScratchFolder folder;
  put(folder / "x.npz", zip_archive({zip_member("../w.npy", npy(1))}));
  EXPECT_EQ(error_of([&] { open_npz(folder / "x.npz"); }),
            (folder / "x.npz").string() +
                ": tensor ../w: the member's name \"../w.npy\" leaves its folder, but it must be a "
                "plain path inside the archive");
  EXPECT_NE(error_of<FileError>([&] { open_npz(folder / "none.npz"); }), "no error");
}

}  // namespace
}  // namespace eckart
