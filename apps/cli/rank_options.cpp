#include "rank_options.h"

#include <string>

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
  CLI::Option* const budget = add_size_or_number(
      command,
      {.name = "--budget",
       .effect = "Share ranks out so that all factors together take these bytes (50MB) or so many "
                 "parameters (20000000), and the total error is least",
       .value = "SIZE"},
      options.budget_bytes, options.rule.budget);
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
