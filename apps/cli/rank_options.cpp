#include "rank_options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {
namespace {

CLI::Validator share(bool with_one) {
  return CLI::Validator(
      [with_one](const std::string& text) {
        double share = 0;
        const bool is_one = CLI::detail::lexical_cast(text, share) && share > 0 &&
                            (share < 1 || (with_one && share == 1));
        return is_one ? std::string()
                      : "'" + text + "' must be a number above 0 and " +
                            (with_one ? "at most 1" : "below 1");
      },
      "");
}

// `20000000` is a number of parameters, `50MB` of bytes.
void take_budget(const std::string& text, RankOptions& options) {
  std::string unit = text.substr(std::min(text.find_first_not_of("0123456789."), text.size()));
  double amount = 0;
  const char* const end = text.data() + text.size() - unit.size();
  const bool is_number = end != text.data() && std::from_chars(text.data(), end, amount).ptr == end;
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array units = {
      Unit{"B", 1},        Unit{"KB", 1e3},        Unit{"MB", 1e6},          Unit{"GB", 1e9},
      Unit{"KIB", 1024.0}, Unit{"MIB", 1048576.0}, Unit{"GIB", 1073741824.0}};
  const auto* const found =
      std::find_if(units.begin(), units.end(), [&](const Unit& one) { return one.name == unit; });
  const double number = amount * (found == units.end() ? 1 : found->bytes);
  constexpr double largest = 9e18;
  const bool is_whole = !unit.empty() || amount == std::floor(amount);
  if (!is_number || (found == units.end() && !unit.empty()) || !is_whole || !(number >= 1) ||
      !(number <= largest)) {
    throw_usage_error("--budget is '" + text + "', but takes bytes or a number of parameters",
                      "50MB and 48MiB are bytes of the file, 20000000 are parameters");
  }
  options.rule.budget.reset();
  options.budget_bytes.reset();
  if (unit.empty()) {
    options.rule.budget = static_cast<Index>(number);
  } else {
    options.budget_bytes = static_cast<std::uint64_t>(number);
  }
}

}  // namespace

void add_rank_options(CLI::App& command, RankOptions& options) {
  CLI::Option* const rank =
      add_number(command, {.name = "--rank", .effect = "Keep this rank at most", .value = "R"},
                 options.rule.rank);
  CLI::Option* const energy =
      command
          .add_option("--energy", options.rule.energy,
                      "Keep the least ranks with this share of each squared norm: 0.95")
          ->type_name("SHARE")
          ->check(share(true));
  CLI::Option* const error =
      command
          .add_option("--error", options.rule.error,
                      "Keep the least ranks that lose at most this share of each norm: 0.1")
          ->type_name("E")
          ->check(share(false));
  CLI::Option* const budget = add_text(
      command,
      {.name = "--budget",
       .effect = "Share ranks out so that all factors together take these bytes (50MB) or so many "
                 "parameters (20000000), and the total error is least",
       .value = "SIZE"},
      [&options](const std::string& text) { take_budget(text, options); });
  rank->excludes(energy)->excludes(error)->excludes(budget);
  energy->excludes(error)->excludes(budget);
  error->excludes(budget);
  add_number(
      command,
      {.name = "--max-rank", .effect = "With one of these: no rank above this one", .value = "R"},
      options.rule.max_rank);
}

void check_rank_options(const RankOptions& options) {
  if (options.rule.max_rank > 0 && !options.is_given()) {
    throw_usage_error("--max-rank alone says nothing of how much to keep",
                      "--rank, --energy, --error or --budget does");
  }
}

}  // namespace eckart::cli
