#include "array_output.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/npy.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "console.h"
#include "usage.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr Index most_rows = 20;         // of a matrix, before some are left out
constexpr Index most_matrices = 3;      // of an array of more axes
constexpr Index width_elsewhere = 100;  // columns where the output is no terminal
constexpr Index left_out = -1;

// Which of `n` rows or columns are shown; `left_out` stands for those between.
std::vector<Index> shown_positions(Index n, Index most) {
  std::vector<Index> positions;
  if (n <= most) {
    for (Index i = 0; i < n; ++i) positions.push_back(i);
    return positions;
  }
  const Index kept = std::max<Index>(most - 1, 2);  // the mark takes a place
  const Index behind = std::max<Index>(1, kept / 3);
  for (Index i = 0; i < kept - behind; ++i) positions.push_back(i);
  positions.push_back(left_out);
  for (Index i = n - behind; i < n; ++i) positions.push_back(i);
  return positions;
}

template <class T>
std::string cell_text(T number) {
  return fmt::format("{:.6g}", number);
}

template <class T>
std::string matrix_text(TensorView<const T> a) {
  const std::vector<Index> rows = shown_positions(a.size(0), most_rows);
  // Six digits, sign, point and exponent take 12 columns at most; most numbers take fewer.
  std::size_t width = 1;
  for (const Index row : rows) {
    for (Index column = 0; row != left_out && column < std::min<Index>(a.size(1), 64); ++column) {
      width = std::max(width, cell_text(a(row, column)).size());
    }
  }
  const int terminal = terminal_width();
  const Index line = terminal > 0 ? terminal : width_elsewhere;
  const std::vector<Index> columns =
      shown_positions(a.size(1), std::max<Index>(3, line / (static_cast<Index>(width) + 2)));
  std::string text;
  for (const Index row : rows) {
    if (row == left_out) {
      text += "  …\n";
      continue;
    }
    for (const Index column : columns) {
      // `…` has three bytes and one column.
      text +=
          column == left_out ? "  …" : fmt::format("  {:>{}}", cell_text(a(row, column)), width);
    }
    text += '\n';
  }
  return text;
}

template <class T>
std::string text_of(std::string_view label, TensorView<const T> a) {
  if (a.rank() == 0)
    return fmt::format("{}  {}\n", label, number_text(static_cast<double>(*a.data())));
  std::string text = fmt::format("{}  {}\n", label, shape_text(a.shape()));
  if (a.count() == 0) return text;
  if (a.rank() == 1) {
    return text + matrix_text(TensorView<const T>(a.data(), {1, a.size(0)}, {0, a.strides()[0]}));
  }
  if (a.rank() == 2) return text + matrix_text(a);
  for (const Index i : shown_positions(a.size(0), most_matrices)) {
    text += i == left_out ? "…\n" : text_of(fmt::format("{}[{}]", label, i), a.select(0, i));
  }
  return text;
}

template <class T>
Json json_of(TensorView<const T> a) {
  if (a.rank() == 0) return number_json(static_cast<double>(*a.data()));
  Json list = Json::array();
  for (Index i = 0; i < a.size(0); ++i) {
    list.push_back(a.rank() == 1 ? number_json(static_cast<double>(a(i)))
                                 : json_of(a.select(0, i)));
  }
  return list;
}

}  // namespace

Json number_json(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

std::string shape_text(const Shape& shape) {
  for (Index axis = 0; axis < shape.rank(); ++axis) {
    if (shape.name(axis).empty()) return sizes_to_string(shape);
  }
  return to_string(shape);
}

Json sizes_json(const Shape& shape) { return shape.sizes(); }

Json array_json(TensorView<const double> a) { return json_of(a); }
Json array_json(TensorView<const float> a) { return json_of(a); }

std::string number_text(double number) { return fmt::format("{:.10g}", number); }

std::string array_text(std::string_view label, TensorView<const double> a) {
  return text_of(label, a);
}
std::string array_text(std::string_view label, TensorView<const float> a) {
  return text_of(label, a);
}

std::string shapes_text(const std::vector<std::pair<std::string_view, Shape>>& operands) {
  std::string text;
  for (const auto& [name, shape] : operands) {
    text += fmt::format("{}{}  {}", text.empty() ? "" : "   ", name, shape_text(shape));
  }
  return text + "\n";
}

ArrayFile::ArrayFile(const std::string& path, std::string_view operation) {
  if (path.empty()) return;
  if (std::filesystem::path(path).extension() != ".npy") {
    throw_usage_error(fmt::format("{}: the result can't be written to {}, but to a .npy file",
                                  operation, printable_path(path)));
  }
  file_.emplace(path);
}

template <class T>
void ArrayFile::write(TensorView<const T> a) {
  if (file_) write_npy(*file_, a);
}

void ArrayFile::sync() {
  if (file_) file_->sync();
}

void ArrayFile::commit() {
  if (file_) file_->commit();
}

template void ArrayFile::write(TensorView<const float>);
template void ArrayFile::write(TensorView<const double>);

}  // namespace eckart::cli
