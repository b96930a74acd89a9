// How the command writes: numbers with their units, tables that fit the terminal, progress.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eckart::cli {

/// A count, which is never below 0, as what the texts of this file take.
inline std::uint64_t to_unsigned(std::int64_t count) { return static_cast<std::uint64_t>(count); }

/// 22713216 as `22,713,216`.
std::string grouped(std::int64_t number);
std::string grouped(std::uint64_t number);
/// `90.9 MB`, `141 GB`: three figures, powers of ten.
std::string bytes_text(std::uint64_t bytes);
/// `84.6 MiB`: powers of two.
std::string binary_bytes_text(std::uint64_t bytes);
/// `13.2 GFLOP`: three figures, powers of ten, before `unit`.
std::string scaled(double amount, std::string_view unit);
/// `52.5%`; `-` when the whole is 0.
std::string percent(double part, double whole);
/// `1 error`, `2 errors`: a count with its noun.
std::string counted(std::uint64_t count, std::string_view noun);

/// Columns of standard output when it is a terminal (COLUMNS, where set, says how many); else 0.
int terminal_width();
/// Bold and dim on a terminal (and NO_COLOR unset), plain elsewhere.
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string red(std::string_view text);
std::string yellow(std::string_view text);

/// A table of text cells. The first column may be indented; columns are as wide as their longest
/// cell, and columns of text are shortened in the middle when the table would not fit the terminal.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// One cell a column; missing ones are empty.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// The table with its titles, each line indented by `indent`.
  std::string text(int indent = 2) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// A bar on standard error, with the time left, for work that takes longer than a second. Silent
/// when standard error is no terminal or `quiet`.
class Progress {
 public:
  Progress(std::string label, std::uint64_t total, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t amount);

 private:
  std::string label_;
  std::uint64_t total_;
  std::uint64_t done_ = 0;
  bool shown_ = false;
  bool enabled_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

/// Writes to standard output; failures are found by `finish_output`.
void print(std::string_view text);
/// Flushes standard output. Throws FileError when something of it could not be written.
void finish_output();

}  // namespace eckart::cli
