#include "eckart/io/findings.h"

#include "eckart/core/errors.h"
#include "eckart/io/utf8.h"

#include <string>

#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::thrown_by;

Finding finding(Severity severity, const std::string& file, const std::string& rule) {
  return {.severity = severity, .file = file, .rule = rule, .message = "is wrong"};
}

TEST(Findings, CountsErrorsAndWarningsApart) {
  Findings findings;
  EXPECT_TRUE(findings.empty());
  EXPECT_EQ(findings.first_error(), nullptr);
  findings.add(finding(Severity::warning, "a", "size"));
  EXPECT_EQ(findings.first_error(), nullptr);
  findings.add(finding(Severity::error, "a", "order"));
  findings.add(finding(Severity::error, "a", "shape"));
  EXPECT_EQ(findings.errors(), 2U);
  EXPECT_EQ(findings.warnings(), 1U);
  EXPECT_EQ(findings.all().size(), 3U);
  EXPECT_EQ(findings.first_error()->rule, "order");
}

TEST(Findings, KeepsAHundredOfOneRuleInOneFileAndCountsTheRest) {
  Findings findings;
  for (int i = 0; i < 1000; ++i) findings.add(finding(Severity::error, "a", "size"));
  for (int i = 0; i < 3; ++i) findings.add(finding(Severity::error, "b", "size"));
  findings.add(finding(Severity::error, "a", "shape"));
  EXPECT_EQ(findings.all().size(), Findings::kept_per_rule + 4);
  EXPECT_EQ(findings.errors(), 1004U);
  EXPECT_EQ(findings.omitted(), 900U);
}

TEST(Findings, OfAnotherFileAreAddedWithTheirCounts) {
  Findings one;
  for (int i = 0; i < 150; ++i) one.add(finding(Severity::warning, "a", "size"));
  Findings all;
  all.add(finding(Severity::error, "b", "size"));
  all.append(one);
  EXPECT_EQ(all.warnings(), 150U);
  EXPECT_EQ(all.errors(), 1U);
  EXPECT_EQ(all.omitted(), 50U);
  all.add(finding(Severity::warning, "a", "size"));
  EXPECT_EQ(all.omitted(), 51U);
}

TEST(Findings, ThrowTheFirstErrorWithFileTensorAndHint) {
  Findings findings;
  findings.add(finding(Severity::warning, "a", "size"));
  throw_first_error(findings);
  findings.add({.file = "a\nb",
                .tensor = "w\x1b[2J",
                .begin = 12,
                .end = 20,
                .rule = "shape",
                .message = "is wrong",
                .hint = "mend it"});
  EXPECT_EQ(thrown_by<FormatError>([&] { throw_first_error(findings); }),
            "a\\x0Ab: tensor w\\x1B[2J: is wrong\n  hint: mend it");
  try {
    throw_first_error(findings);
  } catch (const FormatError& error) {
    EXPECT_EQ(error.path(), "a\nb");
    EXPECT_EQ(error.offset(), 12U);
  }
}

TEST(Printable, LeavesTextAsItIs) {
  EXPECT_EQ(printable("model.layers.0.weight"), "model.layers.0.weight");
  EXPECT_EQ(printable("Größe 重み 🦙"), "Größe 重み 🦙");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesControlCharactersAndWhatIsNoUtf8) {
  EXPECT_EQ(printable("a\nb\tc\x7f"), "a\\x0Ab\\x09c\\x7F");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\x1b[31mred"), "\\x1B[31mred");
  EXPECT_EQ(printable("\xff\xc3"), "\\xFF\\xC3");
  EXPECT_EQ(printable("\xc2\x85"), "\\xC2\\x85");  // next line, a C1 control
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\xE2\\x80\\xAE"
            "b");                                           // right-to-left override
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xED\\xA0\\x80");  // a surrogate
  EXPECT_EQ(printable("\xc0\xaf"), "\\xC0\\xAF");           // an overlong '/'
}

TEST(Printable, CutsLongTextAtACharacter) {
  EXPECT_EQ(printable("abcdef", 3), "abc…");
  EXPECT_EQ(printable("abc", 3), "abc");
  EXPECT_EQ(printable("aää", 4), "aä…");
  EXPECT_EQ(printable(std::string(1'000'000, 'x')), std::string(200, 'x') + "…");
}

TEST(PrintablePath, IsNotCut) {
  const std::string path(1000, 'x');
  EXPECT_EQ(printable_path(path), path);
  EXPECT_EQ(printable_path(std::string(300, '\n')).size(), 1200U);
}

TEST(Utf8, IsValidUpToTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("0123456789abcdefä重🦙"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("0123456789\xff"), 10U);
  EXPECT_EQ(find_invalid_utf8("01234567\x80"), 8U);
  EXPECT_EQ(find_invalid_utf8("ä\xc3"), 2U);             // cut
  EXPECT_EQ(find_invalid_utf8("\xe0\x80\xaf"), 0U);      // overlong
  EXPECT_EQ(find_invalid_utf8("\xed\xbf\xbf"), 0U);      // surrogate
  EXPECT_EQ(find_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("\xf4\x8f\xbf\xbf"), std::nullopt);
}

}  // namespace
}  // namespace eckart
