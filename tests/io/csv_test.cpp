#include "eckart/io/csv.h"

#include "eckart/core/errors.h"

#include <cmath>
#include <string>

#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::thrown_by;

std::string refused(const std::string& text) {
  return thrown_by<FormatError>([&] { read_csv(text, "x.csv"); });
}

TEST(Csv, ReadsNumbersBetweenCommasSemicolonsOrTabs) {
  for (const std::string text :
       {"1,2\n3,4\n", "1;2\n3;4", "1\t2\r\n3\t4\r\n", " 1 , 2 \n+3,4e0\n\n\n",
        "\xef\xbb\xbf"
        "1,2\n3,4"}) {
    const CsvTable table = read_csv(text, "x.csv");
    EXPECT_EQ(table.values.shape(), Shape({2, 2})) << text;
    EXPECT_TRUE(has_elements(table.values.view(), {1, 2, 3, 4})) << text;
    EXPECT_TRUE(table.columns.empty());
  }
}

TEST(Csv, TakesAFirstLineWithoutNumbersAsNames) {
  const CsvTable table = read_csv("width,\"height, \"\"cm\"\"\"\n1,2\n", "x.csv");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"width", "height, \"cm\""}));
  EXPECT_TRUE(has_elements(table.values.view(), {1, 2}));
  EXPECT_EQ(read_csv("a,b\n", "x.csv").values.shape(), Shape({0, 2}));
  EXPECT_EQ(read_csv("größe\n1\n2\n", "x.csv").columns.front(), "größe");
}

TEST(Csv, ReadsNanAndInfinityAsNumbers) {
  const CsvTable table = read_csv("NaN,-inf\n.5,\"-1e-3\"\n", "x.csv");
  EXPECT_TRUE(std::isnan(table.values(0, 0)));
  EXPECT_EQ(table.values(0, 1), -INFINITY);
  EXPECT_EQ(table.values(1, 0), 0.5);
  EXPECT_EQ(table.values(1, 1), -1e-3);
}

TEST(Csv, NamesRowAndColumnOfWhatIsWrong) {
  EXPECT_EQ(refused("1,2\n3\n"),
            "x.csv: row 2, column 2: the row has 1 cell, but the first row has 2");
  EXPECT_EQ(refused("1,2\n3,4,5\n"),
            "x.csv: row 2, column 3: the row has 3 cells, but the first row has 2");
  EXPECT_EQ(refused("a,b\n1,2\n3,\n"),
            "x.csv: row 3, column 2: the cell is empty, but every cell is a number");
  EXPECT_EQ(refused("1,2\n3,x4\n"), "x.csv: row 2, column 2: 'x4' is no number");
  EXPECT_EQ(refused("1,2\n3,0x10\n"), "x.csv: row 2, column 2: '0x10' is no number");
  EXPECT_EQ(refused("1,2\n3,1e999\n"),
            "x.csv: row 2, column 2: '1e999' is beyond the range of double, which is about 1e-308 "
            "to 1e308");
  EXPECT_EQ(refused("1;2\n3;1,5\n"),
            "x.csv: row 2, column 2: '1,5' is no number\n"
            "  hint: numbers are written with a decimal point: 1.5");
  EXPECT_EQ(refused("1,2\n\n3,4\n"), "x.csv: row 2 is empty, but every row has 2 columns");
  EXPECT_EQ(refused("1\n\n3\n"),
            "x.csv: row 2, column 1: the cell is empty, but every cell is a number");
  EXPECT_EQ(refused("a,b\n1,\"2\n"),
            "x.csv: row 2, column 2: a quote begins that does not end in its row");
}

TEST(Csv, RefusesNamesAmongNumbers) {
  EXPECT_EQ(refused("id,5\n1,2\n"),
            "x.csv: row 1, column 1: 'id' is no number, but column 2 is one (5)\n"
            "  hint: a first row holds numbers alone, or names of columns alone");
  EXPECT_EQ(refused(",a,b\n0,1,2\n"),
            "x.csv: row 1, column 1: the cell is empty, but the other columns have names\n"
            "  hint: a column that only counts the rows is left out by its writer: "
            "to_csv(FILE, index=False)");
}

TEST(Csv, RefusesWhatIsNoText) {
  EXPECT_EQ(refused(""), "x.csv: the file is empty, but a table has at least one row");
  EXPECT_EQ(refused("\n\n"), "x.csv: the file is empty, but a table has at least one row");
  EXPECT_EQ(refused(std::string("1,2\n3\0,4", 8)),
            "x.csv: holds a NUL at byte 5, but a table is text");
  EXPECT_EQ(
      refused("1,\xff\n"),
      "x.csv: is not UTF-8 at byte 2, but a table is read as UTF-8\n  hint: save it as UTF-8");
  EXPECT_EQ(refused(std::string("\xff\xfe"
                                "1\0",
                                4)),
            "x.csv: is UTF-16 text, but a table is read as UTF-8\n  hint: save it as UTF-8");
  EXPECT_EQ(refused("1,2\r3,4\r"),
            "x.csv: row 1: holds a carriage return, but lines end with a newline");
}

TEST(Csv, SaysWhereInTheFileItIs) {
  try {
    read_csv("1,2\n3,x\n", "x.csv");
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.offset(), 4U);
    EXPECT_EQ(error.path(), "x.csv");
  }
}

}  // namespace
}  // namespace eckart
