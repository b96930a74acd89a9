#include "trace_report.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "array_output.h"
#include "console.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

std::string figure(double number) { return fmt::format("{:.4g}", number); }

// Of an element by its number in row-major order.
std::vector<Index> position_of(const Shape& shape, Index number) {
  std::vector<Index> position(static_cast<std::size_t>(shape.rank()));
  for (Index axis = shape.rank() - 1; axis >= 0; --axis) {
    position[static_cast<std::size_t>(axis)] = number % shape.size(axis);
    number /= shape.size(axis);
  }
  return position;
}

std::string bad_text(const TraceRow& row) {
  if (row.n_nan + row.n_infinite == 0) return "";
  std::string text;
  if (row.n_nan > 0) text += fmt::format("{} NaN", row.n_nan);
  if (row.n_infinite > 0)
    text += fmt::format("{}{} infinite", text.empty() ? "" : ", ", row.n_infinite);
  return text + fmt::format(", the first at [{}]", fmt::join(row.first_bad, ", "));
}

std::string rows_text(const Traced& found) {
  using Align = Table::Align;
  const bool has_bad = std::any_of(found.rows.begin(), found.rows.end(), [](const TraceRow& row) {
    return row.n_nan + row.n_infinite > 0;
  });
  std::vector<Table::Column> columns = {{"intermediate", Align::left}, {"shape", Align::left},
                                        {"mean", Align::right},        {"norm", Align::right},
                                        {"least", Align::right},       {"largest", Align::right}};
  if (has_bad) columns.push_back({"no number", Align::left});
  Table table(std::move(columns));
  for (const TraceRow& row : found.rows) {
    std::vector<std::string> cells = {row.name,         to_string(row.shape), figure(row.mean),
                                      figure(row.norm), figure(row.least),    figure(row.largest)};
    if (has_bad) cells.push_back(bad_text(row));
    table.add(std::move(cells));
  }
  return table.text();
}

std::string lens_text(const Traced& found) {
  Table table(
      {{"layers", Table::Align::right}, {"next token, by probability", Table::Align::left}});
  for (const LensRow& row : found.lens) {
    std::string tokens;
    for (const LensToken& token : row.likeliest) {
      tokens +=
          fmt::format("{}{} {:.3f}", tokens.empty() ? "" : "   ", token.label, token.probability);
    }
    table.add({std::to_string(row.layer), tokens.empty() ? "no number" : tokens});
  }
  return table.text();
}

Json row_json(const TraceRow& row) {
  Json json = {{"name", row.name},
               {"shape", sizes_json(row.shape)},
               {"axes", row.shape.names()},
               {"mean", number_json(row.mean)},
               {"norm", number_json(row.norm)},
               {"least", number_json(row.least)},
               {"largest", number_json(row.largest)},
               {"n_nan", row.n_nan},
               {"n_infinite", row.n_infinite}};
  if (!row.first_bad.empty()) json["first_bad"] = row.first_bad;
  return json;
}

}  // namespace

TraceRow trace_row(const Intermediate& one) {
  TraceRow row{.name = std::string(one.name), .shape = one.values.shape()};
  double sum = 0, squares = 0;
  Index n = 0, number = 0;
  for_each_element(
      [&](const float& element) {
        const auto value = static_cast<double>(element);
        if (!std::isfinite(value)) {
          if (row.first_bad.empty()) row.first_bad = position_of(row.shape, number);
          (std::isnan(value) ? row.n_nan : row.n_infinite) += 1;
        } else {
          row.least = n == 0 ? value : std::min(row.least, value);
          row.largest = n == 0 ? value : std::max(row.largest, value);
          sum += value;
          squares += value * value;
          ++n;
        }
        ++number;
      },
      one.values);
  row.mean = n == 0 ? 0 : sum / static_cast<double>(n);
  row.norm = std::sqrt(squares);
  return row;
}

std::string trace_text(const Traced& found) {
  std::string text = bold(found.name) + "   " + found.head + "\n";
  text += counted(found.ids.size(), "token") + ":";
  for (std::size_t i = 0; i < std::min<std::size_t>(found.labels.size(), 24); ++i) {
    text += " " + found.labels[i];
  }
  text += found.labels.size() > 24 ? " …\n\n" : "\n\n";
  text += rows_text(found);
  const auto bad = std::find_if(found.rows.begin(), found.rows.end(),
                                [](const TraceRow& row) { return row.n_nan + row.n_infinite > 0; });
  if (bad != found.rows.end()) {
    text += fmt::format("\n{}\n", red(bad->name + " is the first with " + bad_text(*bad)));
  }
  if (!found.lens.empty()) {
    text +=
        "\nwhat the last token's state stands for behind so many layers, through the "
        "unembedding\n" +
        lens_text(found);
  }
  return text;
}

Json trace_json(const Traced& found) {
  Json rows = Json::array();
  for (const TraceRow& row : found.rows) rows.push_back(row_json(row));
  Json lens = Json::array();
  for (const LensRow& row : found.lens) {
    Json tokens = Json::array();
    for (const LensToken& token : row.likeliest) {
      tokens.push_back({{"id", token.id},
                        {"token", token.label},
                        {"logit", number_json(token.logit)},
                        {"probability", number_json(token.probability)}});
    }
    lens.push_back({{"layers", row.layer}, {"likeliest", std::move(tokens)}});
  }
  return {{"model", found.name},
          {"ids", found.ids},
          {"tokens", found.labels},
          {"intermediates", std::move(rows)},
          {"logit_lens", std::move(lens)}};
}

}  // namespace eckart::cli
