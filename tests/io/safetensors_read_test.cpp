#include "eckart/core/errors.h"
#include "eckart/io/safetensors.h"

#include <cstring>
#include <string>

#include "tests/io/safetensors_bytes.h"
#include "tests/io/scratch_folder.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::file_of;
using testing::in_quotes;
using testing::length_of;
using testing::Lines;
using testing::lines_of;
using testing::put;
using testing::read_file;
using testing::ReadFile;
using testing::rules_of;
using testing::ScratchFolder;
using testing::thrown_by;

// What `check` says of a file of this header (quotes written as ') and `data_bytes` zeros.
Lines check(std::string_view header, std::size_t data_bytes) {
  return lines_of(read_file(file_of(in_quotes(header), data_bytes)).findings);
}
Lines rules(std::string_view header, std::size_t data_bytes,
            Strictness strictness = Strictness::check) {
  return rules_of(read_file(file_of(in_quotes(header), data_bytes), strictness).findings);
}
// An entry of 4 bytes, F32 of one element, with this in place of its shape.
Lines check_shape(const std::string& shape) {
  return check("{'w':{'dtype':'F32','shape':" + shape + ",'data_offsets':[0,4]}}", 4);
}
Lines check_offsets(const std::string& offsets) {
  return check("{'w':{'dtype':'F32','shape':[1],'data_offsets':" + offsets + "}}", 4);
}

TEST(Safetensors, AHeaderIsReadWithNamesShapesPlacesAndMetadata) {
  const ReadFile file =
      read_file(file_of(in_quotes("{'__metadata__':{'format':'pt'},"
                                  "'b':{'dtype':'F32','shape':[2,3],'data_offsets':[8,32]},"
                                  "'a':{'dtype':'I64','shape':[],'data_offsets':[0,8]}}    "),
                        32));
  EXPECT_EQ(lines_of(file.findings), Lines{});
  const std::uint64_t begin = file.header.data_begin;
  EXPECT_EQ(begin, 152U);
  ASSERT_EQ(file.header.tensors.size(), 2U);
  EXPECT_EQ(file.header.tensors[0].name, "a");
  EXPECT_EQ(file.header.tensors[0].dtype, Dtype::i64);
  EXPECT_EQ(file.header.tensors[0].shape, Shape{});
  EXPECT_EQ(file.header.tensors[0].begin, begin);
  EXPECT_EQ(file.header.tensors[1].name, "b");
  EXPECT_EQ(file.header.tensors[1].shape, (Shape{2, 3}));
  EXPECT_EQ(file.header.tensors[1].begin, begin + 8);
  EXPECT_EQ(file.header.tensors[1].bytes(), 24U);
  EXPECT_EQ(file.header.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
}

TEST(Safetensors, AnEmptySetOfTensorsIsLegal) {
  EXPECT_EQ(check("{}      ", 0), Lines{});
  EXPECT_EQ(check("{}", 0), Lines{});
}

TEST(Safetensors, AScalarHasOneElement) {
  EXPECT_EQ(check("{'s':{'dtype':'BF16','shape':[],'data_offsets':[0,2]}}", 2), Lines{});
}

TEST(Safetensors, EveryDtypeIsRead) {
  for (int i = 0; i < n_dtypes; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const std::uint64_t bytes = stored_bytes(dtype, 8).value();
    const ReadFile file = read_file(
        file_of(fmt::format(R"({{"w":{{"dtype":"{}","shape":[8],"data_offsets":[0,{}]}}}})",
                            to_string(dtype), bytes),
                bytes));
    EXPECT_EQ(file.findings.errors(), 0U) << to_string(dtype);
    ASSERT_EQ(file.header.tensors.size(), 1U);
    EXPECT_EQ(file.header.tensors[0].dtype, dtype);
  }
}

TEST(Safetensors, WhiteSpaceAroundTheHeaderIsAcceptedThoughOldReadersRefuseIt) {
  EXPECT_EQ(check(" \n{'w':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}}\n ", 1),
            Lines{"warning header_start 8-9: the header begins with white space, which the "
                  "specification forbids and older readers refuse"});
  EXPECT_EQ(rules(" {'w':{'dtype':'U8','shape':[1],'data_offsets':[0,1]}}", 1, Strictness::read),
            Lines{});
}

TEST(Safetensors, AFileWithoutRoomForALengthIsAnError) {
  EXPECT_EQ(lines_of(read_file("").findings),
            Lines{"error header_too_small 0-0: the file has 0 bytes, but the length of a header "
                  "alone takes 8 | the download stopped early or failed: fetch the file again"});
  EXPECT_EQ(rules_of(read_file(std::string(7, '\x01')).findings), Lines{"error header_too_small"});
}

TEST(Safetensors, ALengthBeyondTheLimitIsAnErrorBeforeAnyAllocation) {
  EXPECT_EQ(lines_of(read_file(std::string(8, '\xff')).findings),
            Lines{"error header_too_large 0-8: the first 8 bytes give a header of "
                  "18446744073709551615 bytes, but a header has at most 100000000 | this is most "
                  "likely no safetensors file"});
  EXPECT_EQ(rules_of(read_file(length_of(100'000'001)).findings), Lines{"error header_too_large"});
}

TEST(Safetensors, AHeaderLongerThanTheFileIsAnError) {
  EXPECT_EQ(lines_of(read_file(length_of(100) + "{}").findings),
            Lines{"error header_length 10-108: the file has 10 bytes, but its header ends at byte "
                  "108: 98 bytes of the header are missing | the download stopped early or failed: "
                  "fetch the file again"});
  EXPECT_EQ(rules_of(read_file(length_of(100'000'000)).findings), Lines{"error header_length"});
}

TEST(Safetensors, AHeaderThatIsNoUtf8IsAnError) {
  EXPECT_EQ(lines_of(read_file(file_of("{\"\xff\":1}", 0)).findings),
            Lines{"error header_utf8 10-11: byte 10 of the header is not UTF-8, but a header is "
                  "UTF-8 text"});
}

TEST(Safetensors, AHeaderThatIsNoJsonNamesTheByte) {
  EXPECT_EQ(check("{'w' 1}", 0),
            Lines{"error header_json 13-0: the header is no valid JSON: at byte 13: unexpected "
                  "number literal; expected ':'"});
  EXPECT_EQ(check("{'w':", 0),
            Lines{"error header_json 13-0: the header is no valid JSON: at byte "
                  "13: unexpected end of input; expected '[', '{', or a literal"});
  EXPECT_EQ(rules("{'w':{},}", 0), (Lines{"error missing_field w", "error missing_field w",
                                          "error missing_field w", "error header_json"}));
  EXPECT_EQ(rules("{} {}", 0), Lines{"error header_json"});
  EXPECT_EQ(rules("{/* */}", 0), Lines{"error header_json"});
}

TEST(Safetensors, AHeaderMustBeAnObject) {
  EXPECT_EQ(check("[]", 0), Lines{"error header_json 8-10: the header does not begin with {, but "
                                  "must be a JSON object"});
  EXPECT_EQ(rules("", 0), Lines{"error header_json"});
  EXPECT_EQ(rules("   ", 0), Lines{"error header_json"});
  EXPECT_EQ(rules("\xEF\xBB\xBF{}", 0), Lines{"error header_json"});
}

TEST(Safetensors, ANulByteDoesNotEndTheHeader) {
  EXPECT_EQ(lines_of(read_file(file_of(std::string("{}\0\0", 4), 0)).findings),
            Lines{"error header_json 10-0: the header is no valid JSON: at byte 10: a NUL byte"});
  EXPECT_EQ(lines_of(read_file(file_of(std::string("{}\0", 3), 0)).findings),
            Lines{"error header_json 10-0: the header is no valid JSON: at byte 10: a NUL byte"});
  EXPECT_EQ(lines_of(read_file(file_of(std::string("{\0}", 3), 0)).findings),
            Lines{"error header_json 9-0: the header is no valid JSON: at byte 9: a NUL byte"});
}

TEST(Safetensors, DeepNestingIsAnErrorAndNoStackOverflow) {
  const std::string deep = "{'w':" + std::string(1'000'000, '[');
  EXPECT_EQ(check(deep, 0).back(),
            "error header_json 76-0: the header is no valid JSON: at byte 76: arrays and objects "
            "nested more than 64 deep");
}

TEST(Safetensors, AWrongFileIsNamedForWhatItIs) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n";
  EXPECT_EQ(lines_of(read_file(pointer).findings),
            Lines{"error git_lfs_pointer 0-71: the file is a Git LFS pointer of a file of 90868376 "
                  "bytes (0.09 GB), not that file | fetch the file itself: git lfs pull"});
  EXPECT_EQ(rules_of(read_file("<!DOCTYPE html><html>").findings), Lines{"error html_page"});
  EXPECT_EQ(rules_of(read_file(std::string("GGUF\x03\0\0\0", 8) + std::string(16, '\0')).findings),
            Lines{"error gguf"});
  EXPECT_EQ(rules_of(read_file("PK\x03\x04 and so on").findings), Lines{"error zip_or_pickle"});
  EXPECT_EQ(rules_of(read_file("404").findings), Lines{"error plain_text"});
  EXPECT_EQ(rules_of(read_file(std::string(100, '\0')).findings), Lines{"error zero_bytes"});
}

// Published in 2026: readers that keep the first and the last of two equal keys see other values.
TEST(Safetensors, ADuplicateNameOverTheSameBytesIsAnError) {
  const std::string file =
      file_of(in_quotes("{'w':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
                        "'w':{'dtype':'F32','shape':[1],'data_offsets':[0,4]}}"),
              4);
  ASSERT_EQ(file.size(), 118U);
  EXPECT_EQ(rules_of(read_file(file).findings),
            (Lines{"error duplicate_name w", "warning unaligned_tensor w"}));
  const ReadFile lenient = read_file(file, Strictness::read);
  EXPECT_EQ(
      lines_of(lenient.findings),
      Lines{"error duplicate_name w 61-113: stands twice in the header, at byte 9 and at byte "
            "61, but a name means one tensor | readers differ in which of the two they take: "
            "don't trust the file"});
  ASSERT_EQ(lenient.header.tensors.size(), 1U);
  EXPECT_EQ(lenient.header.tensors[0].dtype, Dtype::f32);
}

TEST(Safetensors, ADuplicateNameOverOtherBytesIsReportedAsThatAndNotAsAHole) {
  EXPECT_EQ(rules("{'w':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
                  "'w':{'dtype':'I8','shape':[4],'data_offsets':[4,8]}}",
                  8),
            Lines{"error duplicate_name w"});
}

TEST(Safetensors, ANameWrittenWithEscapesIsTheSameName) {
  EXPECT_EQ(rules("{'w':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
                  "'\\u0077':{'dtype':'U8','shape':[4],'data_offsets':[4,8]}}",
                  8),
            Lines{"error duplicate_name w"});
}

TEST(Safetensors, AFieldThatStandsTwiceIsAnError) {
  EXPECT_EQ(
      check("{'w':{'dtype':'U8','dtype':'U8','shape':[4],'data_offsets':[0,4]}}", 4),
      Lines{"error duplicate_name w 27-34: its dtype stands twice, but a key means one thing"});
}

TEST(Safetensors, AnUnknownDtypeListsThoseThereAre) {
  EXPECT_EQ(
      check("{'w':{'dtype':'F99','shape':[1],'data_offsets':[0,4]}}", 4),
      Lines{"error unknown_dtype w 22-27: its dtype is \"F99\", but safetensors knows no such "
            "dtype | the dtypes are BOOL F4 F6_E2M3 F6_E3M2 U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 "
            "F8_E4M3FNUZ F8_E5M2FNUZ I16 U16 F16 BF16 I32 U32 F32 C64 F64 I64 U64"});
  EXPECT_EQ(rules("{'w':{'dtype':'f32','shape':[1],'data_offsets':[0,4]}}", 4),
            Lines{"error unknown_dtype w"});
}

TEST(Safetensors, ABrokenEntryLeavesNoHoleBehind) {
  EXPECT_EQ(rules("{'a':{'dtype':'F99','shape':[1],'data_offsets':[0,4]},"
                  "'b':{'dtype':'U8','shape':[4],'data_offsets':[4,8]}}",
                  8),
            Lines{"error unknown_dtype a"});
  EXPECT_EQ(rules("{'a':3,'b':{'dtype':'U8','shape':[4],'data_offsets':[4,8]}}", 8),
            Lines{"error entry_type a"});
}

TEST(Safetensors, SizesMustBeIntegersFromZeroOn) {
  EXPECT_EQ(check_shape("[-1]"), Lines{"error shape w 37-39: its shape holds the negative integer "
                                       "-1, but a size is an integer from 0 on"});
  EXPECT_EQ(check_shape("[1.0]"), Lines{"error shape w 37-40: its shape holds the number 1.0, no "
                                        "plain integer, but a size is an integer from 0 on"});
  EXPECT_EQ(check_shape("[1e0]"), Lines{"error shape w 37-40: its shape holds the number 1e0, no "
                                        "plain integer, but a size is an integer from 0 on"});
  EXPECT_EQ(check_shape("['1']"),
            Lines{"error shape w 37-40: its shape holds the string \"1\", but "
                  "a size is an integer from 0 on"});
  EXPECT_EQ(check_shape("[[1]]"),
            Lines{"error shape w 37-38: its shape holds an array, but holds integers alone"});
  EXPECT_EQ(check_shape("[null]"), Lines{"error shape w 37-41: its shape holds null, but a size is "
                                         "an integer from 0 on"});
  EXPECT_EQ(
      check_shape("1"),
      Lines{"error shape w 36-37: its shape is the integer 1, but must be an array of integers"});
  EXPECT_EQ(check_shape("{}"),
            Lines{"error shape w 36-37: its shape is an object, but must be an array of integers"});
}

TEST(Safetensors, ASizeOfMoreThan63BitsIsAnError) {
  EXPECT_EQ(
      check_shape("[9223372036854775808]"),
      Lines{"error shape_overflow w 37-56: its shape holds the integer 9223372036854775808, but "
            "a size has at most 63 bits"});
  EXPECT_EQ(
      check_shape("[18446744073709551616]"),
      Lines{"error shape_overflow w 37-57: its shape holds the integer 18446744073709551616 of "
            "more than 64 bits, but a size has at most 63 bits"});
  EXPECT_EQ(rules("{'w':{'dtype':'F32','shape':[-99999999999999999999],'data_offsets':[0,4]}}", 4),
            Lines{"error shape w"});
}

TEST(Safetensors, AProductThatOverflowsIsAnError) {
  EXPECT_EQ(check_shape("[2,9223372036854775807]"),
            Lines{"error shape_overflow w 9-81: F32 of 2x9223372036854775807 has more bits than a "
                  "64-bit count holds"});
  // The elements fit in 63 bits, their bits do not fit in 64.
  EXPECT_EQ(rules("{'w':{'dtype':'I32','shape':[1,4611686018427387904],'data_offsets':[0,4]}}", 4),
            Lines{"error shape_overflow w"});
  // 2^32 * 2^32 wraps to 0 in 64 bits.
  EXPECT_EQ(rules("{'w':{'dtype':'U8','shape':[4294967296,4294967296],'data_offsets':[0,0]}}", 0),
            Lines{"error shape_overflow w"});
}

TEST(Safetensors, AnEmptyAxisMakesATensorEmptyWhateverTheOrder) {
  for (const char* const shape : {"[0,4611686018427387904,4611686018427387904]",
                                  "[4611686018427387904,4611686018427387904,0]",
                                  "[4611686018427387904,0,4611686018427387904]"}) {
    const std::string header =
        fmt::format("{{'w':{{'dtype':'F32','shape':{},'data_offsets':[0,0]}}}}", shape);
    EXPECT_EQ(rules(header, 0), Lines{}) << shape;
  }
  // Each size has its limit all the same.
  EXPECT_EQ(rules("{'w':{'dtype':'F32','shape':[0,9223372036854775808],'data_offsets':[0,0]}}", 0),
            Lines{"error shape_overflow w"});
}

TEST(Safetensors, AShapeOfMoreThan64AxesIsAnError) {
  const auto shape_of = [](int axes) {
    std::string shape = "[1";
    for (int i = 1; i < axes; ++i) shape += ",1";
    return shape + "]";
  };
  EXPECT_EQ(check_shape(shape_of(64)), Lines{});
  EXPECT_EQ(check_shape(shape_of(65)),
            Lines{"error shape w 165-166: its shape has more than 64 axes, but no more are read"});
}

TEST(Safetensors, PackedElementsMustFillWholeBytes) {
  EXPECT_EQ(check("{'w':{'dtype':'F4','shape':[1,3],'data_offsets':[0,2]}}", 2),
            Lines{"error misaligned_bits w 9-62: F4 of 1x3 takes 12 bits, but a tensor must fill "
                  "whole bytes"});
  EXPECT_EQ(check("{'w':{'dtype':'F4','shape':[2,3],'data_offsets':[0,3]}}", 3), Lines{});
  EXPECT_EQ(check("{'w':{'dtype':'F6_E2M3','shape':[4],'data_offsets':[0,3]}}", 3), Lines{});
  EXPECT_EQ(rules("{'w':{'dtype':'F6_E3M2','shape':[1],'data_offsets':[0,1]}}", 1),
            Lines{"error misaligned_bits w"});
}

TEST(Safetensors, TheRangeMustBeAsLongAsTheTensor) {
  EXPECT_EQ(check("{'w':{'dtype':'F32','shape':[2,3],'data_offsets':[0,20]}}", 20),
            Lines{"error size_mismatch w 9-64: F32 of 2x3 takes 24 bytes, but its data_offsets "
                  "[0, 20] span 20"});
  EXPECT_EQ(check("{'w':{'dtype':'U8','shape':[],'data_offsets':[0,0]}}", 0),
            Lines{"error size_mismatch w 9-59: U8 of a scalar takes 1 byte, but its data_offsets "
                  "[0, 0] span 0"});
}

TEST(Safetensors, OffsetsMustBeTwoIntegersInOrder) {
  EXPECT_EQ(check_offsets("[4,0]"),
            Lines{"error offsets_order w 9-61: its data_offsets [4, 0] end before they begin"});
  EXPECT_EQ(check_offsets("[0]"),
            Lines{"error data_offsets w 57-58: its data_offsets has 1 number, "
                  "but needs two: begin and end"});
  EXPECT_EQ(check_offsets("[]").size(), 1U);
  EXPECT_EQ(check_offsets("[0,4,4]"), Lines{"error data_offsets w 61-62: its data_offsets has 3 "
                                            "numbers, but needs two: begin and end"});
  EXPECT_EQ(check_offsets("[0,-4]"),
            Lines{"error data_offsets w 58-60: its data_offsets holds the "
                  "negative integer -4, but an offset is an integer from 0 on"});
  EXPECT_EQ(check_offsets("[-0,4]"),
            Lines{"error data_offsets w 56-58: its data_offsets holds the "
                  "negative integer -0, but an offset is an integer from 0 on"});
  EXPECT_EQ(check_offsets("[0,18446744073709551615]"),
            Lines{"error data_offsets w 58-78: its data_offsets holds 18446744073709551615, but no "
                  "file has as many bytes"});
  EXPECT_EQ(
      check_offsets("[0,18446744073709551616]"),
      Lines{"error data_offsets w 58-78: its data_offsets holds the integer "
            "18446744073709551616 of more than 64 bits, but an offset is an integer from 0 on"});
  EXPECT_EQ(check_offsets("4"),
            Lines{"error data_offsets w 55-56: its data_offsets is the integer 4, "
                  "but must be an array of integers"});
}

TEST(Safetensors, TensorsMustNotOverlap) {
  EXPECT_EQ(
      check("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
            "'b':{'dtype':'U8','shape':[4],'data_offsets':[2,6]}}",
            6),
      Lines{"error offsets_overlap b 115-119: its data_offsets [2, 6] begin inside those of a, "
            "[0, 4], but tensors must not overlap"});
  // A long tensor around two others.
  EXPECT_EQ(rules("{'a':{'dtype':'U8','shape':[9],'data_offsets':[0,9]},"
                  "'b':{'dtype':'U8','shape':[1],'data_offsets':[1,2]},"
                  "'c':{'dtype':'U8','shape':[1],'data_offsets':[4,5]}}",
                  9),
            (Lines{"error offsets_overlap b", "error offsets_overlap c"}));
}

TEST(Safetensors, NoBytesMayHideBetweenTensors) {
  EXPECT_EQ(
      check("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
            "'b':{'dtype':'U8','shape':[4],'data_offsets':[8,12]}}",
            12),
      Lines{"error offsets_hole b 118-122: its data_offsets [8, 12] leave 4 bytes unused, but "
            "the tensor before it, a, ends at 4, and no bytes may lie between"});
  EXPECT_EQ(
      check("{'a':{'dtype':'U8','shape':[4],'data_offsets':[1,5]}}", 5),
      Lines{"error offsets_hole a 61-62: its data_offsets [1, 5] leave 1 byte unused, but the "
            "first tensor must begin at 0"});
}

TEST(Safetensors, NoBytesMayFollowTheLastTensor) {
  EXPECT_EQ(check("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}", 7),
            Lines{"error file_length 65-68: 3 bytes follow the last tensor, which ends at byte 65, "
                  "but the file must end with it"});
  EXPECT_EQ(rules("{}", 1), Lines{"error file_length"});
}

TEST(Safetensors, ATruncatedFileHoldsTheTensorsThatAreStillWhole) {
  const ReadFile file =
      read_file(file_of(in_quotes("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
                                  "'b':{'dtype':'U8','shape':[4],'data_offsets':[4,8]}}"),
                        7));
  ASSERT_EQ(file.header.tensors.size(), 1U);
  EXPECT_EQ(file.header.tensors[0].name, "a");
  EXPECT_EQ(file.findings.errors(), 1U);
}

TEST(Safetensors, ATruncatedFileSaysHowManyBytesAreMissing) {
  EXPECT_EQ(
      check("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}", 1),
      Lines{"error file_length 62-65: the file has 62 bytes, but its tensors end at byte 65: 3 "
            "bytes are missing | the download stopped early: fetch the file again"});
}

TEST(Safetensors, MetadataMayBeAbsentEmptyOrNull) {
  EXPECT_EQ(check("{'__metadata__':{}}", 0), Lines{});
  EXPECT_EQ(check("{'__metadata__':null}", 0), Lines{});
}

TEST(Safetensors, MetadataOfAnotherTypeNamesKeyTypeAndByte) {
  EXPECT_EQ(
      check("{'__metadata__':{'format':'pt','step':12}}", 0),
      Lines{"error metadata_type 46-48: __metadata__: the value of \"step\" is the integer 12, "
            "at byte 46, but every value must be a string"});
  EXPECT_EQ(
      check("{'__metadata__':{'a':{'b':[1]},'c':null}}", 0),
      (Lines{"error metadata_type 29-30: __metadata__: the value of \"a\" is an object, at byte "
             "29, but every value must be a string",
             "error metadata_type 43-47: __metadata__: the value of \"c\" is null, at byte 43, "
             "but every value must be a string"}));
  EXPECT_EQ(check("{'__metadata__':[{}]}", 0),
            Lines{"error metadata_type 24-25: __metadata__ is an array, but must be an object of "
                  "strings"});
  EXPECT_EQ(
      check("{'__metadata__':true}", 0),
      Lines{"error metadata_type 24-28: __metadata__ is true, but must be an object of strings"});
  EXPECT_EQ(rules("{'__metadata__':{'step':12}}", 0, Strictness::read),
            Lines{"error metadata_type"});
}

TEST(Safetensors, MetadataMustNotRepeatAKey) {
  EXPECT_EQ(check("{'__metadata__':{'a':'1','a':'2'}}", 0),
            Lines{"error duplicate_name 37-40: __metadata__: the key \"a\" stands twice, but a key "
                  "means one thing"});
  EXPECT_EQ(
      check("{'__metadata__':{},'__metadata__':null}", 0),
      Lines{"error duplicate_name 27-41: __metadata__ stands twice, but a key means one thing"});
}

TEST(Safetensors, MetadataOfMillionsOfEntriesIsNotKept) {
  std::string header = "{\"__metadata__\":{";
  for (int i = 0; i < 100'001; ++i) header += fmt::format("{}\"{}\":\"\"", i == 0 ? "" : ",", i);
  const ReadFile file = read_file(file_of(header + "}}", 0));
  EXPECT_EQ(rules_of(file.findings), Lines{"error metadata_entries"});
  EXPECT_EQ(file.findings.all()[0].message,
            "__metadata__ has more than 100000 entries, but no more are read");
}

TEST(Safetensors, AnExtraFieldIsAnErrorForTheCheckAndAWarningForAReader) {
  const char* const header =
      "{'w':{'dtype':'U8','shape':[1],'extra':{'a':[1,{'b':2}]},'data_offsets':[0,1]}}";
  EXPECT_EQ(
      check(header, 1),
      Lines{"error extra_field w 39-46: has the field \"extra\", but an entry has only dtype, "
            "shape and data_offsets"});
  EXPECT_EQ(rules(header, 1, Strictness::read), Lines{"warning extra_field w"});
}

TEST(Safetensors, AnEntryWrittenAsAnArrayIsAnErrorForTheCheckAndAWarningForAReader) {
  const std::string header = "{'w':['U8',[2,3],[0,6]]}";
  EXPECT_EQ(check(header, 6),
            Lines{"error positional_entry w 13-14: is an array, but an entry must be an object of "
                  "dtype, shape and data_offsets"});
  const ReadFile file = read_file(file_of(in_quotes(header), 6), Strictness::read);
  EXPECT_EQ(rules_of(file.findings), Lines{"warning positional_entry w"});
  ASSERT_EQ(file.header.tensors.size(), 1U);
  EXPECT_EQ(file.header.tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(rules("{'w':['U8',[2,3],[0,6],1,2]}", 6, Strictness::read),
            (Lines{"warning positional_entry w", "error entry_type w"}));
  EXPECT_EQ(
      rules("{'w':['F32']}", 0, Strictness::read),
      (Lines{"warning positional_entry w", "error missing_field w", "error missing_field w"}));
}

TEST(Safetensors, AnEntryNeedsAllItsFields) {
  EXPECT_EQ(check("{'w':{'shape':[],'data_offsets':[0,1]}}", 1),
            Lines{"error missing_field w 9-46: has no dtype, but an entry has dtype, shape and "
                  "data_offsets"});
  EXPECT_EQ(
      check("{'w':'F32'}", 0),
      Lines{"error entry_type w 13-18: is the string \"F32\", but an entry must be an object of "
            "dtype, shape and data_offsets"});
  EXPECT_EQ(check("{'w':{'dtype':32,'shape':[1],'data_offsets':[0,4]}}", 4),
            Lines{"error entry_type w 22-24: its dtype is the integer 32, but must be a string"});
}

TEST(Safetensors, TensorsWithoutElementsShareAnOffsetLegally) {
  const char* const header =
      "{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
      "'none':{'dtype':'F32','shape':[0,7],'data_offsets':[0,0]},"
      "'more':{'dtype':'F32','shape':[0],'data_offsets':[4,4]}}";
  EXPECT_EQ(
      check(header, 4),
      Lines{"warning zero_size_shared_offset none: holds no elements and shares an offset with "
            "a neighbour, which is legal; 1 more tensor does so"});
  EXPECT_EQ(rules(header, 4, Strictness::read), Lines{});
}

TEST(Safetensors, ATensorWithoutElementsInsideAnotherIsAnError) {
  EXPECT_EQ(rules("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
                  "'none':{'dtype':'F32','shape':[0],'data_offsets':[2,2]}}",
                  4, Strictness::read),
            Lines{"error offsets_overlap none"});
}

TEST(Safetensors, UnalignedTensorsAreLegalAndSummedUp) {
  const char* const header =
      "{'a':{'dtype':'U8','shape':[1],'data_offsets':[0,1]},"
      "'b':{'dtype':'F32','shape':[1],'data_offsets':[1,5]},"
      "'c':{'dtype':'F32','shape':[1],'data_offsets':[5,9]}} ";
  EXPECT_EQ(check(header, 9),
            Lines{"warning unaligned_tensor b 169-173: begins at byte 169, no multiple of the 4 "
                  "bytes of F32, which is legal but slower to read; 1 more tensor does so"});
  EXPECT_EQ(rules(header, 9, Strictness::read), Lines{});
}

TEST(Safetensors, NamesInMessagesArePrintable) {
  EXPECT_EQ(check("{'a\\u001b[2J':{'dtype':'U8','shape':[4],'data_offsets':[0,4]},"
                  "'b':{'dtype':'U8','shape':[4],'data_offsets':[2,6]}}",
                  6),
            Lines{"error offsets_overlap b 124-128: its data_offsets [2, 6] begin inside those of "
                  "a\\x1B[2J, [0, 4], but tensors must not overlap"});
}

TEST(Safetensors, ManyBrokenEntriesAreCountedNotKept) {
  std::string header = "{";
  for (int i = 0; i < 20'000; ++i) header += fmt::format("{}\"{}\":1", i == 0 ? "" : ",", i);
  const ReadFile file = read_file(file_of(header + "}", 0));
  EXPECT_EQ(file.findings.errors(), 20'000U);
  EXPECT_EQ(file.findings.all().size(), Findings::kept_per_rule);
  EXPECT_TRUE(file.header.tensors.empty());
}

TEST(OpenSafetensors, GivesBytesInPlaceAndTensorsByName) {
  const ScratchFolder folder;
  std::string file = file_of(in_quotes("{'w':{'dtype':'F32','shape':[1],'data_offsets':[4,8]},"
                                       "'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}"),
                             8);
  const float value = 1.5F;
  std::memcpy(file.data() + file.size() - sizeof value, &value, sizeof value);
  put(folder / "x.safetensors", file);
  const SafetensorsFile open = open_safetensors(folder / "x.safetensors");
  EXPECT_EQ(open.file_size(), file.size());
  EXPECT_EQ(open.find("missing"), nullptr);
  ASSERT_NE(open.find("w"), nullptr);
  const auto bytes = open.bytes(*open.find("w"));
  ASSERT_EQ(bytes.size(), sizeof value);
  EXPECT_EQ(std::memcmp(bytes.data(), &value, sizeof value), 0);
  EXPECT_EQ(open.find("a"), &open.tensors()[0]);
}

TEST(OpenSafetensors, BytesOfATensorThatReachBeyondTheFileAreRefused) {
  const ScratchFolder folder;
  const std::string path = (folder / "x.safetensors").string();
  put(path, file_of(in_quotes("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}"), 4));
  const SafetensorsFile open = open_safetensors(path);
  StoredTensor tensor = *open.find("a");  // 8 bytes, the header's 53, and its own 4
  EXPECT_EQ(open.bytes(tensor).size(), 4U);
  tensor.end = 66;
  EXPECT_EQ(thrown_by<ArgumentError>([&] { (void)open.bytes(tensor); }),
            "bytes: tensor a is said to be at bytes 61 to 66, but " + path +
                " has 65 bytes\n  hint: take it from `tensors` or `find` of this file");
  tensor.end = 60;
  EXPECT_THROW((void)open.bytes(tensor), ArgumentError);
}

TEST(OpenSafetensors, ThrowsTheFirstErrorWithFileTensorAndHint) {
  const ScratchFolder folder;
  const std::string path = (folder / "x.safetensors").string();
  put(path, file_of(in_quotes("{'a':{'dtype':'U8','shape':[4],'data_offsets':[0,4]}}"), 1));
  EXPECT_EQ(thrown_by<FormatError>([&] { open_safetensors(path); }),
            path +
                ": the file has 62 bytes, but its tensors end at byte 65: 3 bytes are missing\n"
                "  hint: the download stopped early: fetch the file again");
  put(path, file_of(in_quotes("{'a':{'dtype':'U8','shape':[4],'data_offsets':[1,5]}}"), 5));
  EXPECT_EQ(thrown_by<FormatError>([&] { open_safetensors(path); }),
            path +
                ": tensor a: its data_offsets [1, 5] leave 1 byte unused, but the first tensor "
                "must begin at 0");
}

}  // namespace
}  // namespace eckart
