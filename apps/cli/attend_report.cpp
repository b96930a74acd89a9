#include "attend_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "array_output.h"
#include "console.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr std::array<std::string_view, 4> pattern_names = {"previous token", "first token",
                                                           "same token", "induction"};
// Columns of weights that are printed of one head; more are in --json and --html.
constexpr Index most_columns = 16;

std::string name_of(const AttendedHead& head) {
  return fmt::format("{}.{}", head.layer, head.pattern.head);
}

std::string share(double value) { return fmt::format("{:.0f}%", 100 * value); }

const std::string& label(const Attended& found, Index token) {
  return found.labels[static_cast<std::size_t>(token)];
}

std::string table_of_heads(const Attended& found) {
  using Align = Table::Align;
  Table table({{"head", Align::left},
               {"entropy", Align::right},
               {"previous", Align::right},
               {"first", Align::right},
               {"same", Align::right},
               {"induction", Align::right},
               {"strongest link", Align::left},
               {"pattern", Align::left}});
  for (const AttendedHead& head : found.heads) {
    const HeadPattern& p = head.pattern;
    table.add({name_of(head), fmt::format("{:.2f}", p.entropy), share(p.previous), share(p.first),
               share(p.same), share(p.induction),
               fmt::format("{:.2f}  {} [{}] → {} [{}]", p.strongest, label(found, p.query), p.query,
                           label(found, p.key), p.key),
               std::string(pattern_name(p))});
  }
  return table.text();
}

std::string heads_of_patterns(const Attended& found) {
  std::string text;
  for (const std::string_view name : pattern_names) {
    std::string heads;
    for (const AttendedHead& head : found.heads) {
      if (pattern_name(head.pattern) == name) heads += (heads.empty() ? "" : ", ") + name_of(head);
    }
    if (!heads.empty()) text += fmt::format("  {:<14}  {}\n", name, heads);
  }
  return text;
}

std::string weights_table(const Attended& found, const AttendedHead& head) {
  const Index n = head.weights.size(0), columns = std::min(n, most_columns);
  std::vector<Table::Column> titles = {{"", Table::Align::left}};
  for (Index key = 0; key < columns; ++key) {
    titles.push_back({label(found, key), Table::Align::right});
  }
  Table table(std::move(titles));
  for (Index query = 0; query < n; ++query) {
    std::vector<std::string> cells = {fmt::format("{} [{}]", label(found, query), query)};
    for (Index key = 0; key < columns; ++key) {
      const bool is_hidden = found.is_causal && key > query;
      cells.push_back(is_hidden ? std::string() : fmt::format("{:.2f}", head.weights(query, key)));
    }
    table.add(std::move(cells));
  }
  std::string text = table.text();
  if (columns < n) {
    text += fmt::format("  the first {} of {} tokens as keys; --json and --html have all\n",
                        columns, n);
  }
  return text;
}

}  // namespace

std::string attend_text(const Attended& found) {
  const double n = static_cast<double>(found.ids.size());
  std::string text =
      bold(found.name) + "   " + found.head + "\n" +
      fmt::format("{}; entropy in bits, a mean over tokens (of {} tokens at most {:.2f})\n\n",
                  counted(found.ids.size(), "token"), found.ids.size(), std::log2(n));
  text += table_of_heads(found);
  const std::string patterns = heads_of_patterns(found);
  if (!patterns.empty()) text += "\nat least half of the attention\n" + patterns;
  if (found.heads.size() == 1) {
    text += fmt::format("\nweights of head {}, a row for each token that looks\n",
                        name_of(found.heads.front())) +
            weights_table(found, found.heads.front());
  }
  return text;
}

Json attend_json(const Attended& found) {
  Json heads = Json::array();
  for (const AttendedHead& head : found.heads) {
    const HeadPattern& p = head.pattern;
    heads.push_back({{"layer", head.layer},
                     {"head", p.head},
                     {"entropy_bits", p.entropy},
                     {"strongest", {{"weight", p.strongest}, {"query", p.query}, {"key", p.key}}},
                     {"previous_token", p.previous},
                     {"first_token", p.first},
                     {"same_token", p.same},
                     {"induction", p.induction},
                     {"pattern", pattern_name(p).empty() ? Json() : Json(pattern_name(p))},
                     {"weights", array_json(head.weights.view())}});
  }
  return {{"model", found.name},
          {"ids", found.ids},
          {"tokens", found.labels},
          {"causal", found.is_causal},
          {"heads", std::move(heads)}};
}

}  // namespace eckart::cli
