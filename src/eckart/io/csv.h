// Tables of numbers as text: one line a row, cells between commas, semicolons or tabs.
#pragma once

#include "eckart/core/tensor.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

struct CsvTable {
  /// Names of the columns, from a first line that holds no number; none without such a line.
  std::vector<std::string> columns;
  Tensor<double> values;  // rows x columns
};

/// Reads a table of numbers. The separator is the tab where the first line has one, else the
/// semicolon, else the comma. A first line without any number names the columns. Cells may stand in
/// double quotes; `nan` and `inf` are numbers, in any case of letters.
/// Returns `values` of rows x columns. Cost: one pass; memory: the text (mapped) and the numbers.
/// Accuracy: each number is the double nearest to what is written.
/// Throws FileError when the file can't be opened; FormatError, naming the row (the file's line,
/// from 1) and the column, for an empty cell, a cell that is no number or beyond double, names
/// among numbers, a row that is longer or shorter than the first, and for text that is not UTF-8 or
/// holds a NUL.
CsvTable load_csv(const std::filesystem::path& path);
/// The same from text in memory; `name` stands for the path in messages.
CsvTable read_csv(std::string_view text, const std::string& name);

}  // namespace eckart
