#include "eckart/io/npy.h"

#include "eckart/core/errors.h"

#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::content_of;
using testing::put;
using testing::ScratchFolder;
using std::string_literals::operator""s;

std::string golden_path(const std::string& name) {
  return ECKART_SOURCE_DIR "/tests/golden/npy/" + name + ".npy";
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A file with this text as its header, exactly.
std::string file_of(const std::string& header, const std::string& data = {}, int version = 1) {
  std::string file = "\x93NUMPY" + std::string{static_cast<char>(version), '\0'};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  }
  return file + header + data;
}

// A header as NumPy writes it, with these values and data of so many zero bytes.
std::string array_of(const std::string& descr, const std::string& shape, std::size_t data_bytes,
                     const std::string& order = "False") {
  std::string header =
      "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  return file_of(header + '\n', std::string(data_bytes, '\0'));
}

std::string described(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings.all()) {
    if (!text.empty()) text += '\n';
    text += (finding.severity == Severity::error ? "error " : "warning ") + finding.rule;
    if (finding.begin) {
      text += " [" + std::to_string(*finding.begin) + "," + std::to_string(*finding.end) + ")";
    }
    text += ": " + finding.message;
    if (!finding.hint.empty()) text += " | " + finding.hint;
  }
  return text;
}

// What the header's rules have to say of a file.
std::string found_in(const std::string& file) {
  Findings findings;
  read_npy_header(bytes_of(file), file.size(), "x.npy", findings);
  return described(findings);
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

std::string error_of_golden(const std::string& name, NpyOptions options = {}) {
  const std::string path = golden_path(name);
  std::string text = error_of([&] { load_npy<float>(path, options); });
  if (text.starts_with(path)) text.replace(0, path.size(), "FILE");
  return text;
}

template <class T>
std::vector<T> elements(const Tensor<T>& tensor) {
  return {tensor.data(), tensor.data() + tensor.count()};
}

TEST(NpyHeader, EveryFieldIsRead) {
  const std::string file = array_of("'>i2'", "(3, 4)", 24, "True");
  Findings findings;
  const auto header = read_npy_header(bytes_of(file), file.size(), "x.npy", findings);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(described(findings), "");
  EXPECT_EQ(header->major_version, 1);
  EXPECT_EQ(header->descr, ">i2");
  EXPECT_EQ(header->dtype, Dtype::i16);
  EXPECT_EQ(header->element_bytes, 2U);
  EXPECT_TRUE(header->big_endian);
  EXPECT_TRUE(header->fortran_order);
  EXPECT_EQ(header->shape, (Shape{3, 4}));
  EXPECT_EQ(header->data_begin, 128U);
}

TEST(NpyHeader, TheBeginningOfAFileIsEnough) {
  const std::string file = array_of("'<f8'", "(1000000, 1000)", 0);
  Findings findings;
  const auto header =
      read_npy_header(bytes_of(file), file.size() + 8'000'000'000, "x.npy", findings);
  ASSERT_TRUE(header.has_value()) << described(findings);
  EXPECT_EQ(header->shape, (Shape{1'000'000, 1'000}));
  EXPECT_EQ(described(findings), "");
}

TEST(NpyHeader, AnyOrderOfKeysAndAnySpacingIsRead) {
  const std::vector<std::string> headers = {
      "{'shape': (2,), 'descr': '<f4', 'fortran_order': False}\n",
      "{\"fortran_order\":False,\"shape\":(2,),\"descr\":\"<f4\",}\n",
      "  { 'descr' :\t'<f4' ,\n'fortran_order': False , 'shape' : ( 2 , ) , }  \n",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }\n",
      "{'descr': ('<f4'), 'fortran_order': (False), 'shape': ((2),), }\n",
  };
  for (std::string header : headers) {
    header.insert(header.size() - 1, (64 - (header.size() + 10) % 64) % 64, ' ');
    const std::string file = file_of(header, "\0\0\x80\x3f\0\0\0\x40"s);
    EXPECT_EQ(found_in(file), "") << header;
    const Tensor<float> x = read_npy<float>(bytes_of(file), "x.npy");
    EXPECT_EQ(elements(x), (std::vector<float>{1, 2})) << header;
  }
}

TEST(NpyHeader, SizesOfPython2AreRead) {
  const Tensor<float> x = read_npy<float>(bytes_of(array_of("'<f4'", "(2L, 10L)", 80)), "x.npy");
  EXPECT_EQ(x.shape(), (Shape{2, 10}));
}

TEST(NpyHeader, AShapeOfNoAxesIsOneElement) {
  const Tensor<float> x = read_npy<float>(bytes_of(array_of("'<f4'", "()", 4)), "x.npy");
  EXPECT_EQ(x.shape(), Shape{});
  EXPECT_EQ(x.count(), 1);
}

TEST(NpyHeader, WhatIsNoNpyFileIsSaidSo) {
  EXPECT_EQ(found_in(""),
            "error npy_magic [0,0): the file is empty, but an .npy file begins with "
            "93 4e 55 4d 50 59");
  EXPECT_EQ(found_in("\x01\x02\x03\x04"s),
            "error npy_magic [0,4): the file begins with 01 02 03 04, but an .npy file begins with "
            "93 4e 55 4d 50 59");
  EXPECT_TRUE(found_in("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234\n")
                  .starts_with("error git_lfs_pointer: "))
      << found_in("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1234\n");
}

TEST(NpyHeader, OnlyThreeVersionsExist) {
  const std::string good = array_of("'<f4'", "(1,)", 4);
  for (const auto& [major, minor, text] :
       {std::tuple{0, 0, "0.0"}, {4, 0, "4.0"}, {1, 1, "1.1"}, {255, 255, "255.255"}}) {
    std::string file = good;
    file[6] = static_cast<char>(major);
    file[7] = static_cast<char>(minor);
    EXPECT_EQ(found_in(file), "error npy_version [6,8): the version is "s + text +
                                  ", but there are only 1.0, 2.0 and 3.0");
  }
}

TEST(NpyHeader, ATruncatedHeaderSaysHowMuchIsMissing) {
  const std::string file = array_of("'<f4'", "(1,)", 4);
  const std::string hint = " | copy or download it again";
  EXPECT_EQ(found_in(file.substr(0, 7)),
            "error npy_header_length [0,7): the header takes 10 bytes, but the file has 7: 3 bytes "
            "missing" +
                hint);
  EXPECT_EQ(found_in(file.substr(0, 100)),
            "error npy_header_length [0,100): the header takes 128 bytes, but the file has 100: 28 "
            "bytes missing" +
                hint);
  EXPECT_EQ(found_in("\x93NUMPY\x02\0\1\0\0"s),
            "error npy_header_length [0,11): the header takes 12 bytes, but the file has 11: 1 "
            "byte missing" +
                hint);
}

TEST(NpyHeader, AHeaderLongerThanTheCapIsAnError) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }";
  std::string longest = header;
  longest.resize(9'999, ' ');
  EXPECT_EQ(found_in(file_of(longest + '\n', "\0\0\0\0"s, 2)),
            "warning npy_padding [12,10012): the data begins at byte 10012, but it should begin at "
            "a multiple of 64 (16 in old files)");
  EXPECT_EQ(found_in(file_of(longest + " \n", "\0\0\0\0"s, 2)),
            "error npy_header_length [8,12): the header is declared as 10001 bytes long, but NumPy "
            "and Eckart read at most 10000");
  EXPECT_EQ(found_in("\x93NUMPY\x02\0\xff\xff\xff\xff"s),
            "error npy_header_length [8,12): the header is declared as 4294967295 bytes long, but "
            "NumPy and Eckart read at most 10000");
  EXPECT_EQ(max_npy_header_bytes, 10'012U);
}

TEST(NpyHeader, SyntaxErrorsSayWhereAndWhat) {
  const auto error = [](const std::string& header) {
    const std::string file = file_of(header);
    std::string text = found_in(file);
    const std::string begin = "error npy_header [10," + std::to_string(file.size()) + "): at byte ";
    return text.starts_with(begin) ? text.substr(begin.size()) : text;
  };
  EXPECT_EQ(error(""), "10 of the header: expected a dict, found the end of the header");
  EXPECT_EQ(error("[]"), "10 of the header: expected a dict, found \"[]\"");
  EXPECT_EQ(error("{1: 2}"), "11 of the header: expected a key in quotes or }, found \"1: 2}\"");
  EXPECT_EQ(error("{'a' 2}"), "15 of the header: expected : after the key, found \"2}\"");
  EXPECT_EQ(error("{'a': 2 'b': 3}"), "18 of the header: expected , or }, found \"'b': 3}\"");
  EXPECT_EQ(error("{'a': 2} x"),
            "19 of the header: expected nothing but spaces after }, found "
            "\"x\"");
  EXPECT_EQ(error("{'a': __import__('os')}"),
            "16 of the header: expected a string, True, False, a whole number, a tuple or a list, "
            "found \"__import__('os')}\"");
  EXPECT_EQ(error("{'a': Trues}"),
            "16 of the header: expected a string, True, False, a whole number, a tuple or a list, "
            "found \"Trues}\"");
  EXPECT_EQ(error("{'a': 2.5}"), "17 of the header: expected a whole number, found \".5}\"");
  EXPECT_EQ(error("{'a': 0x10}"), "17 of the header: expected a whole number, found \"x10}\"");
  EXPECT_EQ(error("{'a': 010}"),
            "16 of the header: expected a number without leading zeros, found \"010}\"");
  EXPECT_EQ(error("{'a': -}"), "17 of the header: expected digits, found \"}\"");
  EXPECT_EQ(error("{'a': (1 2)}"), "19 of the header: expected , or ), found \"2)}\"");
  EXPECT_EQ(error("{'a': (,)}"),
            "17 of the header: expected a string, True, False, a whole number, a tuple or a list, "
            "found \",)}\"");
  EXPECT_EQ(error("{'a': [1 2]}"), "19 of the header: expected , or ], found \"2]}\"");
  EXPECT_EQ(error("{'a': 'b"),
            "18 of the header: expected the end of the string, found the end of the header");
  EXPECT_EQ(error("{'a': 1"), "17 of the header: expected , or }, found the end of the header");
  EXPECT_EQ(error("{'a': " + std::string(5000, '(')),
            "33 of the header: expected values nested at most 16 deep, found "
            "\"((((((((((((((((((((\"");
}

TEST(NpyHeader, ItsKeysAreExactlyThree) {
  const std::string rest = "'fortran_order': False, 'shape': (1,)";
  const auto error = [](const std::string& header) {
    const std::string text = found_in(file_of(header, std::string(4, '\0')));
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(error("{" + rest + "}"), "the header has no key descr");
  EXPECT_EQ(error("{'descr': '<f4', 'shape': (1,)}"), "the header has no key fortran_order");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': False}"), "the header has no key shape");
  EXPECT_EQ(error("{'descr': '<f4', " + rest + ", 'shape': (2,)}"),
            "the header has the key shape twice");
  EXPECT_EQ(error("{'descr': '<f4', " + rest + ", 'x': 1}"),
            "the header has a key \"x\", but only descr, fortran_order and shape");
  EXPECT_EQ(error("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}"),
            "fortran_order is 1, but it must be True or False");
}

TEST(NpyHeader, Version3IsUtf8AndTheOthersAreNot) {
  const std::string records = "[('\xe9', '<f4')]";
  const std::string header = "{'descr': " + records + ", 'fortran_order': False, 'shape': (0,), }";
  const std::string begin = "error npy_header [12," + std::to_string(12 + header.size()) + "): ";
  EXPECT_EQ(found_in(file_of(header, {}, 3)), begin + "the header is not UTF-8 at byte 25");
  EXPECT_EQ(found_in(file_of(header, {}, 2)).find("UTF-8"), std::string::npos);
}

TEST(NpyHeader, ShapesThatNoArrayHasAreErrors) {
  const auto error = [](const std::string& shape) {
    const std::string text = found_in(array_of("'<f4'", shape, 4));
    EXPECT_TRUE(text.starts_with("error npy_shape [")) << text;
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(error("(-1,)"),
            "shape is (-1,), but -1 is no size: sizes are whole numbers of at least 0");
  EXPECT_EQ(error("(-0,)"),
            "shape is (-0,), but -0 is no size: sizes are whole numbers of at least 0");
  EXPECT_EQ(error("(True, 2)"),
            "shape is (True, 2), but True is no size: sizes are whole numbers of at least 0");
  EXPECT_EQ(error("('2',)"),
            "shape is ('2',), but '2' is no size: sizes are whole numbers of at least 0");
  EXPECT_EQ(error("(1)"), "shape is (1), but it must be a tuple (of one size: (5,) with a comma)");
  EXPECT_EQ(error("[1]"), "shape is [1], but it must be a tuple");
  EXPECT_EQ(error("(4294967296, 4294967296)"),
            "shape is (4294967296, 4294967296), but its product is more than 63 bits hold");
  EXPECT_EQ(error("(9223372036854775808,)"),
            "shape is (9223372036854775808,), but 9223372036854775808 is more than 63 bits hold");
  EXPECT_EQ(error("(9223372036854775807,)"),
            "shape is 9223372036854775807 of 4 bytes each, but that is more than 64 bits hold");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  EXPECT_EQ(error(many + ")"),
            "shape is " + many + "), but it has 65 axes, and NumPy has at most 64");
}

TEST(NpyHeader, AnEmptyAxisMakesAnyOtherSizesHarmless) {
  const std::string file = array_of("'<f4'", "(9223372036854775807, 9223372036854775807, 0)", 0);
  EXPECT_EQ(found_in(file), "");
  EXPECT_EQ(read_npy<float>(bytes_of(file), "x.npy").count(), 0);
}

TEST(NpyHeader, MissingDataIsCounted) {
  EXPECT_EQ(found_in(array_of("'<f4'", "(3, 4)", 40)),
            "error npy_size [128,168): 3x4 of descr <f4 takes 48 bytes, but 40 follow the header: "
            "8 bytes missing | copy or download it again");
  // A promise of 2 GB in a file of 128 bytes allocates nothing.
  EXPECT_EQ(
      error_of([] { read_npy<double>(bytes_of(array_of("'<f8'", "(268435456,)", 0)), "x.npy"); }),
      "x.npy: 268435456 of descr <f8 takes 2147483648 bytes, but 0 follow the header: "
      "2147483648 bytes missing\n  hint: copy or download it again");
}

TEST(NpyHeader, SurplusDataIsAWarningAndNotRead) {
  const std::string file = array_of("'<f4'", "(2,)", 9);
  EXPECT_EQ(found_in(file),
            "warning npy_size [136,137): 2 of descr <f4 takes 8 bytes, but 9 follow the header: 1 "
            "byte too many, left unread");
  EXPECT_EQ(read_npy<float>(bytes_of(file), "x.npy").count(), 2);
}

TEST(NpyHeader, PaddingThatNumpyWouldNotWriteIsAWarning) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  EXPECT_EQ(found_in(file_of(header, std::string(4, '\0'))),
            "warning npy_padding [10,67): the header does not end with a new line\n"
            "warning npy_padding [10,67): the data begins at byte 67, but it should begin at a "
            "multiple of 64 (16 in old files)");
  std::string old = header + std::string(80 - 10 - 1 - header.size(), ' ') + '\n';
  EXPECT_EQ(found_in(file_of(old, std::string(4, '\0'))), "");
}

TEST(NpyHeader, DescrsThatAreNoneAreErrors) {
  for (const char* const descr :
       {"''", "'<'", "'<f'", "'<f3'", "'<i5'", "'<b2'", "'<x4'", "'f'", "'<f4x'", "'<f4[ns]'",
        "'<M8['", "'float32'", "'<c7'", "'|S99999999999999999999'", "5", "True", "('<f4', (2,))"}) {
    const std::string text = found_in(array_of(descr, "(1,)", 4));
    EXPECT_TRUE(text.starts_with("error npy_descr [20,")) << descr << ": " << text;
  }
  EXPECT_EQ(found_in(array_of("'<f3'", "(1,)", 4)),
            "error npy_descr [20,25): descr '<f3' is no dtype, but it must be a byte order, a kind "
            "and a size in bytes, as <f4");
  for (const char* const field :
       {"'a'", "('a',)", "('a', '<f4', 2, 3)", "(1, '<f4')", "('a', '<f4', -1)",
        "('a', '<f4', '2')", "('a', '<f4', (4294967296, 4294967296))",
        "('a', '<f4', (1, (2, 3)))"}) {
    EXPECT_EQ(found_in(array_of("["s + field + "]", "(1,)", 4)),
              "error npy_descr [20," + std::to_string(22 + std::string(field).size()) +
                  "): the field " + field + " of descr is not a name, a dtype and at most a shape");
  }
}

TEST(NpyHeader, AMissingByteOrderIsTakenAsLittleWithAWarning) {
  const std::string data = "\0\0\x80\x3f"s;
  for (const char* const descr : {"f4", "=f4", "|f4"}) {
    std::string file = array_of("'"s + descr + "'", "(1,)", 0) + data;
    EXPECT_EQ(found_in(file), "warning npy_byte_order [20," +
                                  std::to_string(22 + std::string(descr).size()) + "): descr '" +
                                  descr + "' states no byte order; it is read as little-endian");
    EXPECT_EQ(read_npy<float>(bytes_of(file), "x.npy")(0), 1.0F);
  }
  for (const char* const descr : {"'u1'", "'|i1'", "'b1'", "'>u1'"}) {
    EXPECT_EQ(found_in(array_of(descr, "(1,)", 1)), "") << descr;
  }
}

TEST(NpyHeader, ObjectsAreAnErrorWhereverTheyHide) {
  const std::string message =
      "), stored as a pickle: reading one can run any program, so that it is not read here | if "
      "you trust its source, load it in Python with allow_pickle=True and save "
      "x.astype(np.float32)";
  EXPECT_EQ(found_in(array_of("'|O'", "(1,)", 9)),
            "error npy_object [20,24): the elements are Python objects (descr |O" + message);
  for (const char* const descr : {"'O'", "'|O8'", "'O4'"}) {
    EXPECT_TRUE(found_in(array_of(descr, "(1,)", 9)).starts_with("error npy_object")) << descr;
  }
  const std::string nested = "[('a', '<f4'), ('b', [('c', '|O', (2,))])]";
  EXPECT_EQ(found_in(array_of(nested, "(1,)", 9)),
            "error npy_object [20," + std::to_string(20 + nested.size()) +
                "): the elements are Python objects (descr " + nested + message);
}

TEST(NpyHeader, SoundFilesOfOtherElementsAreWarnings) {
  const auto warning = [](const std::string& name) {
    const std::string text = found_in(content_of(golden_path(name)));
    EXPECT_TRUE(text.starts_with("warning npy_dtype [")) << text;
    return text.substr(text.find(": ") + 2);
  };
  EXPECT_EQ(warning("records"),
            "the elements are records of several fields (descr [('a', '<f4'), ('b', '<i2', "
            "(2,))]), not numbers | save one field by itself: np.save(\"field.npy\", x[\"name\"])");
  EXPECT_EQ(warning("text"),
            "the elements are text (descr <U2), not numbers | if the text is "
            "numbers, save x.astype(np.float32)");
  EXPECT_EQ(warning("dates"),
            "the elements are dates or times (descr <M8[ns]), not numbers | save "
            "x.astype(np.int64)");
  EXPECT_EQ(warning("complex64"),
            "the elements are complex numbers (descr <c8), not real ones | "
            "save x.real and x.imag");
  EXPECT_EQ(warning("complex128"),
            "the elements are complex numbers (descr <c16), not real ones | "
            "save x.real and x.imag");
  EXPECT_EQ(warning("long_double"),
            "the elements are long doubles (descr <f16), which differ from "
            "machine to machine | save x.astype(np.float64)");
  EXPECT_EQ(warning("bfloat16"),
            "the elements are raw bytes (descr <V2), whose meaning is not stated | ml_dtypes saves "
            "bfloat16 so; read it with NpyOptions::reinterpret = BF16");
  EXPECT_EQ(warning("float8_e4m3fn"),
            "the elements are raw bytes (descr <V1), whose meaning is not stated | ml_dtypes saves "
            "its 1-byte floats so; read it as what it was with NpyOptions::reinterpret: F8_E4M3, "
            "F8_E5M2, F8_E8M0, F8_E4M3FNUZ or F8_E5M2FNUZ");
  EXPECT_EQ(warning("float8_e5m2"),
            "the elements are 1-byte floats (descr <f1), a name that NumPy itself can't read | "
            "ml_dtypes saves float8_e5m2 so; read it with NpyOptions::reinterpret = F8_E5M2");
}

TEST(NpyHeader, TheSizeOfTextAndRecordsIsCheckedToo) {
  EXPECT_EQ(found_in(array_of("'<U2'", "(3,)", 20)),
            "error npy_size [128,148): 3 of descr <U2 takes 24 bytes, but 20 follow the header: 4 "
            "bytes missing | copy or download it again");
  EXPECT_EQ(found_in(array_of("[('a', '<f4'), ('b', '<i2', (2, 3))]", "(2,)", 30)),
            "error npy_size [128,158): 2 of descr [('a', '<f4'), ('b', '<i2', (2, 3))] takes 32 "
            "bytes, but 30 follow the header: 2 bytes missing | copy or download it again");
}

TEST(LoadNpy, WhatAreNoNumbersIsRefusedWithTheWayOut) {
  EXPECT_EQ(error_of_golden("complex64"),
            "FILE: the elements are complex numbers (descr <c8), not real ones\n"
            "  hint: save x.real and x.imag");
  EXPECT_EQ(error_of_golden("bfloat16"),
            "FILE: the elements are raw bytes (descr <V2), whose meaning is not stated\n"
            "  hint: ml_dtypes saves bfloat16 so; read it with NpyOptions::reinterpret = BF16");
  EXPECT_TRUE(error_of_golden("objects").starts_with("FILE: the elements are Python objects"));
  for (const char* const name :
       {"records", "text", "dates", "complex128", "long_double", "float8_e4m3fn", "float8_e5m2"}) {
    EXPECT_TRUE(error_of_golden(name).starts_with("FILE: the elements are ")) << name;
  }
}

TEST(LoadNpy, RawBytesAreReadAsTheDtypeAskedFor) {
  const std::vector<float> expected = {1.5F, -2.0F, 0.25F};
  EXPECT_EQ(elements(load_npy<float>(golden_path("bfloat16"), {.reinterpret = Dtype::bf16})),
            expected);
  EXPECT_EQ(
      elements(load_npy<float>(golden_path("float8_e4m3fn"), {.reinterpret = Dtype::f8_e4m3})),
      expected);
  EXPECT_EQ(elements(load_npy<float>(golden_path("float8_e5m2"), {.reinterpret = Dtype::f8_e5m2})),
            expected);
}

TEST(LoadNpy, AReinterpretationOfAnotherSizeIsRefused) {
  const auto error = [](const std::string& name, Dtype dtype) {
    return error_of<ArgumentError>(
        [&] { load_npy<float>(golden_path(name), {.reinterpret = dtype}); });
  };
  EXPECT_EQ(error("bfloat16", Dtype::f32),
            "npy: the elements have 2 bytes (descr <V2), but F32 has 4");
  EXPECT_EQ(error("float8_e4m3fn", Dtype::f4),
            "npy: the elements can't be reinterpreted as F4, which can't be widened to float");
  EXPECT_TRUE(error_of_golden("objects", {.reinterpret = Dtype::u8})
                  .starts_with("FILE: the elements are Python objects"));
}

TEST(LoadNpy, EveryNumberAndByteOrderIsConverted) {
  const std::vector<double> small = {-2, -1, 0, 1, 2, 3};
  const std::vector<double> large = {250, 251, 252, 253, 254, 255};
  for (const char* const name : {"f2_le", "f2_be", "f4_le", "f4_be", "f8_le", "f8_be", "i1_le",
                                 "i2_le", "i2_be", "i4_le", "i4_be", "i8_le", "i8_be"}) {
    const Tensor<double> x = load_npy<double>(golden_path(name));
    EXPECT_EQ(x.shape(), (Shape{2, 3})) << name;
    EXPECT_EQ(elements(x), small) << name;
    EXPECT_EQ(elements(load_npy<float>(golden_path(name))),
              std::vector<float>(small.begin(), small.end()))
        << name;
  }
  for (const char* const name : {"u1_le", "u2_le", "u2_be", "u4_le", "u4_be", "u8_le", "u8_be"}) {
    EXPECT_EQ(elements(load_npy<double>(golden_path(name))), large) << name;
  }
  EXPECT_EQ(elements(load_npy<double>(golden_path("b1"))), (std::vector<double>{0, 1, 0, 1, 0, 1}));
}

TEST(LoadNpy, ALongBigEndianArrayIsSwappedBlockByBlock) {
  const std::size_t n = 50'000;  // three blocks and a rest
  std::string file = array_of("'>u4'", "(50000,)", 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(i >> shift & 0xff);
  }
  const Tensor<float> x = read_npy<float>(bytes_of(file), "x.npy");
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(x(i), static_cast<float>(i)) << i;
  }
}

TEST(LoadNpy, FortranOrderIsUndone) {
  const Tensor<float> x = load_npy<float>(golden_path("fortran"));
  EXPECT_EQ(x.shape(), (Shape{2, 3}));
  EXPECT_EQ(elements(x), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const Tensor<double> y = load_npy<double>(golden_path("fortran_3d_be"));
  EXPECT_EQ(y.shape(), (Shape{2, 3, 4}));
  std::vector<double> expected(24);
  std::iota(expected.begin(), expected.end(), 0.0);
  EXPECT_EQ(elements(y), expected);
}

TEST(LoadNpy, AFortranMatrixThatFillsNoTileIsUndone) {
  for (const auto& [rows, columns] :
       {std::pair<Index, Index>{1, 70}, {70, 1}, {33, 65}, {32, 64}, {0, 5}, {5, 0}}) {
    const std::string shape = "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
    std::string file = array_of("'<f4'", shape, 0, "True");
    for (Index j = 0; j < columns; ++j) {
      for (Index i = 0; i < rows; ++i) {
        const auto value = static_cast<float>(100 * i + j);
        file.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
    }
    const Tensor<float> x = read_npy<float>(bytes_of(file), "x.npy");
    ASSERT_EQ(x.shape(), (Shape{rows, columns}));
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < columns; ++j) {
        ASSERT_EQ(x(i, j), static_cast<float>(100 * i + j)) << shape << ' ' << i << ' ' << j;
      }
    }
  }
}

TEST(LoadNpy, ScalarsEmptyArraysAndTheLaterVersionsAreRead) {
  const Tensor<float> scalar = load_npy<float>(golden_path("scalar"));
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(*scalar.data(), 1.5F);
  EXPECT_EQ(load_npy<float>(golden_path("empty")).shape(), (Shape{0, 5}));
  for (const char* const name : {"version_2", "version_3"}) {
    EXPECT_EQ(elements(load_npy<float>(golden_path(name))), (std::vector<float>{0, 1, 2, 3, 4, 5}))
        << name;
  }
}

TEST(LoadNpy, ABrokenFileThrowsWithItsPathAndPlace) {
  const ScratchFolder folder;
  put(folder / "x.npy", array_of("'<f4'", "(3,)", 8));
  try {
    load_npy<float>(folder / "x.npy");
    FAIL() << "no error";
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), (folder / "x.npy").string());
    EXPECT_EQ(error.offset(), 128U);
    EXPECT_EQ(error.message(),
              (folder / "x.npy").string() +
                  ": 3 of descr <f4 takes 12 bytes, but 8 follow the header: 4 bytes missing");
  }
  EXPECT_NE(error_of<FileError>([&] { load_npy<float>(folder / "none.npy"); }), "no error");
}

TEST(SaveNpy, TheBytesAreThoseOfNumpy) {
  const ScratchFolder folder;
  Tensor<float> f4(Shape{2, 3, 4});
  for (Index i = 0; i < 24; ++i) f4.data()[i] = static_cast<float>(i) / 4;
  save_npy(folder / "f4.npy", f4);
  EXPECT_EQ(content_of(folder / "f4.npy"), content_of(golden_path("written_f4")));

  save_npy(folder / "f8.npy", Tensor<double>::vector({0.0, 1.0 / 3, 2.0 / 3, 3.0 / 3, 4.0 / 3}));
  EXPECT_EQ(content_of(folder / "f8.npy"), content_of(golden_path("written_f8")));

  save_npy(folder / "i8.npy", Tensor<std::int64_t>::vector({-1, (std::int64_t{1} << 53) + 1}));
  EXPECT_EQ(content_of(folder / "i8.npy"), content_of(golden_path("written_i8")));

  save_npy(folder / "scalar.npy", Tensor<double>(Shape{}, -0.5));
  EXPECT_EQ(content_of(folder / "scalar.npy"), content_of(golden_path("written_scalar")));

  save_npy(folder / "empty.npy", Tensor<double>(Shape{0, 5}));
  EXPECT_EQ(content_of(folder / "empty.npy"), content_of(golden_path("empty")));
}

TEST(SaveNpy, HeadersOfEveryLengthArePaddedAsNumpyDoes) {
  const ScratchFolder folder;
  const std::string expected = content_of(ECKART_SOURCE_DIR "/tests/golden/npy/headers.bin");
  std::string written;
  for (std::size_t rank = 1; rank <= 40; ++rank) {
    std::vector<Index> sizes(rank, 1);
    sizes[0] = 0;
    save_npy(folder / "x.npy", Tensor<float>(Shape(sizes)));
    written += content_of(folder / "x.npy");
  }
  save_npy(folder / "x.npy", Tensor<float>(Shape{12'345'678'901, 0}));
  written += content_of(folder / "x.npy");
  EXPECT_EQ(written, expected);
}

TEST(SaveNpy, AViewIsWrittenInRowMajorOrder) {
  const ScratchFolder folder;
  Tensor<float> x(Shape{200, 300});
  for (Index i = 0; i < x.count(); ++i) x.data()[i] = static_cast<float>(i);
  const TensorView<float> view = x.view().transpose().slice(0, {.begin = 1, .step = 2});
  save_npy(folder / "x.npy", view);
  const Tensor<float> back = load_npy<float>(folder / "x.npy");
  ASSERT_EQ(back.shape(), (Shape{150, 200}));
  for (Index i = 0; i < 150; ++i) {
    for (Index j = 0; j < 200; ++j) ASSERT_EQ(back(i, j), x(j, 2 * i + 1)) << i << ' ' << j;
  }
}

TEST(SaveNpy, WhatIsSavedLoadsToTheSameBits) {
  const ScratchFolder folder;
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {0.0, -0.0, 5e-324, 1.0 / 3, inf, -inf, nan};
  save_npy(folder / "x.npy", Tensor<double>(Shape{7}, values));
  const Tensor<double> back = load_npy<double>(folder / "x.npy");
  for (Index i = 0; i < 7; ++i) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back(i)),
              std::bit_cast<std::uint64_t>(values[static_cast<std::size_t>(i)]))
        << i;
  }
}

TEST(SaveNpy, MoreAxesThanNumpyHasAreRefused) {
  const ScratchFolder folder;
  const Tensor<float> x(Shape(std::vector<Index>(65, 1)));
  EXPECT_EQ(error_of<ArgumentError>([&] { save_npy(folder / "x.npy", x); }),
            "save: the array has 65 axes, but NumPy has at most 64");
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace eckart
