#include "eckart/core/errors.h"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

TEST(Errors, TheHintStandsOnALineOfItsOwn) {
  const ShapeError error("matmul: x is 2x3", "transpose it");
  EXPECT_STREQ(error.what(), "matmul: x is 2x3\n  hint: transpose it");
  EXPECT_EQ(error.message(), "matmul: x is 2x3");
  EXPECT_EQ(error.hint(), "transpose it");
}

TEST(Errors, WithoutAHintTheTextIsTheMessage) {
  const ArgumentError error("svd: the rank is 0");
  EXPECT_STREQ(error.what(), "svd: the rank is 0");
  EXPECT_EQ(error.message(), "svd: the rank is 0");
  EXPECT_EQ(error.hint(), "");
}

TEST(Errors, ArgumentsAreInvalidArgumentsAndFilesRuntimeErrors) {
  EXPECT_EQ(thrown_by<std::invalid_argument>([] { throw_shape_error("a", "b"); }), "a\n  hint: b");
  EXPECT_EQ(thrown_by<std::invalid_argument>([] { throw_argument_error("a"); }), "a");
  EXPECT_EQ(thrown_by<std::runtime_error>([] { throw_file_error("p", "a"); }), "a");
  EXPECT_EQ(thrown_by<std::runtime_error>([] { throw_format_error("p", 3, "a", "b"); }),
            "a\n  hint: b");
}

TEST(Errors, EachFunctionThrowsItsOwnType) {
  EXPECT_THROW(throw_shape_error("a"), ShapeError);
  EXPECT_THROW(throw_argument_error("a"), ArgumentError);
  EXPECT_THROW(throw_file_error("p", "a"), FileError);
  EXPECT_THROW(throw_format_error("p", std::nullopt, "a"), FormatError);
}

TEST(Errors, EveryErrorCarriesItsTextWhateverItsType) {
  try {
    throw_format_error("p", 3, "a", "b");
  } catch (const ErrorText& text) {
    EXPECT_EQ(text.message(), "a");
    EXPECT_EQ(text.hint(), "b");
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Errors, AFormatErrorIsAFileErrorAndKnowsPathAndOffset) {
  try {
    throw_format_error("model.safetensors", 8, "the header ends early");
  } catch (const FileError& error) {
    EXPECT_EQ(error.path(), "model.safetensors");
    const auto* const format = dynamic_cast<const FormatError*>(&error);
    ASSERT_NE(format, nullptr);
    EXPECT_EQ(format->offset(), std::optional<std::uint64_t>(8));
    return;
  }
  FAIL() << "nothing was thrown";
}

TEST(Errors, ARuleWithoutAPlaceHasNoOffset) {
  EXPECT_EQ(FormatError("p", std::nullopt, "a").offset(), std::nullopt);
}

}  // namespace
}  // namespace eckart
