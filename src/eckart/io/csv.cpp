#include "eckart/io/csv.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/utf8.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace eckart {
namespace {

constexpr std::size_t shown_bytes = 40;  // of a cell, in a message

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

enum class Reading { number, beyond_double, no_number };

std::optional<double> special_number(std::string_view digits) {
  std::string lower(digits);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (lower == "inf" || lower == "infinity") return std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// A decimal number with an optional sign, read whole.
std::pair<Reading, double> read_number(std::string_view cell) {
  const bool is_negative = cell.starts_with('-');
  if (is_negative || cell.starts_with('+')) cell.remove_prefix(1);
  if (cell.empty()) return {Reading::no_number, 0};
  double value = 0;
  if (cell.front() == '.' || (cell.front() >= '0' && cell.front() <= '9')) {
    const char* const end = cell.data() + cell.size();
    const auto [stop, error] = std::from_chars(cell.data(), end, value);
    if (stop != end || error == std::errc::invalid_argument) return {Reading::no_number, 0};
    if (error == std::errc::result_out_of_range) return {Reading::beyond_double, 0};
  } else if (const std::optional<double> special = special_number(cell)) {
    value = *special;
  } else {
    return {Reading::no_number, 0};
  }
  return {Reading::number, is_negative ? -value : value};
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  CsvTable read() {
    check_text();
    while (next_line()) {
      if (separator_ == 0) choose_separator();
      split();
      if (n_columns_ == 0) {
        n_columns_ = cells_.size();
        if (take_names()) continue;
      }
      take_numbers();
    }
    if (n_columns_ == 0) fail(0, "the file is empty, but a table has at least one row");
    const auto columns = static_cast<Index>(n_columns_);
    const Index rows = static_cast<Index>(numbers_.size()) / columns;
    return {std::move(names_), Tensor<double>(Shape{rows, columns}, numbers_)};
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& what,
                         const std::string& hint = {}) const {
    throw_format_error(name_, offset, printable_path(name_) + ": " + what, hint);
  }
  [[noreturn]] void fail_at(std::size_t column, const std::string& what,
                            const std::string& hint = {}) const {
    fail(line_begin_, fmt::format("row {}, column {}: {}", row_, column + 1, what), hint);
  }

  void check_text() {
    if (text_.starts_with("\xef\xbb\xbf"))
      position_ = 3;  // the mark that some editors put in front
    const std::string_view begin = text_.substr(0, 2);
    if (begin == "\xff\xfe" || begin == "\xfe\xff") {
      fail(0, "is UTF-16 text, but a table is read as UTF-8", "save it as UTF-8");
    }
    const std::size_t nul = text_.find('\0');
    if (nul != std::string_view::npos) {
      fail(nul, fmt::format("holds a NUL at byte {}, but a table is text", nul));
    }
    if (const auto invalid = find_invalid_utf8(text_)) {
      fail(static_cast<std::size_t>(*invalid),
           fmt::format("is not UTF-8 at byte {}, but a table is read as UTF-8", *invalid),
           "save it as UTF-8");
    }
  }

  // The next line into `line_`; false at the end. Blank lines at the end are none.
  bool next_line() {
    if (text_.find_first_not_of("\r\n", position_) == std::string_view::npos) return false;
    line_begin_ = position_;
    const std::size_t end = std::min(text_.find('\n', position_), text_.size());
    line_ = text_.substr(position_, end - position_);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    if (line_.find('\r') != std::string_view::npos) {
      fail(position_,
           fmt::format("row {}: holds a carriage return, but lines end with a newline", row_ + 1));
    }
    position_ = std::min(end + 1, text_.size());
    ++row_;
    return true;
  }

  void choose_separator() {
    separator_ = ',';
    bool is_quoted = false;
    bool has_semicolon = false;
    for (const char c : line_) {
      if (c == '"') is_quoted = !is_quoted;
      if (is_quoted) continue;
      if (c == '\t') separator_ = '\t';
      has_semicolon = has_semicolon || c == ';';
    }
    if (separator_ == ',' && has_semicolon) separator_ = ';';
  }

  // `line_` into `cells_`, without blanks and quotes around them.
  void split() {
    cells_.clear();
    std::size_t begin = 0;
    while (true) {
      std::size_t end = begin;
      bool is_quoted = false;
      for (; end < line_.size() && (is_quoted || line_[end] != separator_); ++end) {
        if (line_[end] == '"') is_quoted = !is_quoted;
      }
      if (is_quoted) fail_at(cells_.size(), "a quote begins that does not end in its row");
      std::string_view cell = line_.substr(begin, end - begin);
      cell = trimmed(cell);
      if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
        cell = trimmed(cell.substr(1, cell.size() - 2));
      }
      cells_.push_back(cell);
      if (end == line_.size()) return;
      begin = end + 1;
    }
  }

  // The first row as names, where it has no number.
  bool take_names() {
    const auto is_number = [](std::string_view cell) {
      return read_number(cell).first != Reading::no_number;
    };
    const auto is_name = [&](std::string_view cell) { return !cell.empty() && !is_number(cell); };
    const auto number = std::find_if(cells_.begin(), cells_.end(), is_number);
    const auto name = std::find_if(cells_.begin(), cells_.end(), is_name);
    if (name == cells_.end()) return false;
    if (number != cells_.end()) {
      fail_at(
          static_cast<std::size_t>(name - cells_.begin()),
          fmt::format("'{}' is no number, but column {} is one ({})", printable(*name, shown_bytes),
                      number - cells_.begin() + 1, printable(*number, shown_bytes)),
          "a first row holds numbers alone, or names of columns alone");
    }
    const auto empty = std::find_if(cells_.begin(), cells_.end(),
                                    [](std::string_view cell) { return cell.empty(); });
    if (empty != cells_.end()) {
      fail_at(static_cast<std::size_t>(empty - cells_.begin()),
              "the cell is empty, but the other columns have names",
              "a column that only counts the rows is left out by its writer: "
              "to_csv(FILE, index=False)");
    }
    for (const std::string_view cell : cells_) {
      std::string column(cell);
      for (std::size_t at = column.find("\"\""); at != std::string::npos;
           at = column.find("\"\"", at + 1)) {
        column.erase(at, 1);
      }
      names_.push_back(std::move(column));
    }
    return true;
  }

  void take_numbers() {
    if (cells_.size() == 1 && cells_.front().empty() && line_.empty() && n_columns_ > 1) {
      fail(line_begin_,
           fmt::format("row {} is empty, but every row has {} columns", row_, n_columns_));
    }
    for (std::size_t column = 0; column < std::min(cells_.size(), n_columns_); ++column) {
      numbers_.push_back(number_at(column));
    }
    if (cells_.size() == n_columns_) return;
    fail_at(
        std::min(cells_.size(), n_columns_),
        fmt::format("the row has {} columns, but the first row has {}", cells_.size(), n_columns_));
  }

  double number_at(std::size_t column) const {
    const std::string_view cell = cells_[column];
    if (cell.empty()) fail_at(column, "the cell is empty, but every cell is a number");
    const auto [reading, value] = read_number(cell);
    if (reading == Reading::number) return value;
    const std::string shown = "'" + printable(cell, shown_bytes) + "'";
    if (reading == Reading::beyond_double) {
      fail_at(column, shown + " is beyond the range of double, which is about 1e-308 to 1e308");
    }
    const bool has_comma = separator_ != ',' && cell.find(',') != std::string_view::npos;
    fail_at(column, shown + " is no number",
            has_comma ? "numbers are written with a decimal point: 1.5" : "");
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t line_begin_ = 0;
  std::string_view line_;
  std::size_t row_ = 0;  // of `line_`, from 1
  char separator_ = 0;
  std::size_t n_columns_ = 0;
  std::vector<std::string_view> cells_;  // of `line_`
  std::vector<std::string> names_;
  std::vector<double> numbers_;
};

}  // namespace

CsvTable read_csv(std::string_view text, const std::string& name) {
  return Reader(text, name).read();
}

CsvTable load_csv(const std::filesystem::path& path) {
  const MappedFile file = open_mapped(path);
  const auto bytes = file.bytes();
  return read_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

}  // namespace eckart
