#include "rank_options.h"

#include <string>

#include "usage.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {

void add_rank_options(CLI::App& command, RankOptions& options) {
  CLI::Option* const rank =
      add_number(command, {.name = "--rank", .effect = "Keep this rank at most", .value = "R"},
                 options.rule.rank);
  CLI::Option* const energy = add_decimal(
      command,
      {.name = "--energy",
       .effect = "Keep the least ranks with this share of each squared norm: 0.95",
       .value = "SHARE"},
      Decimals::above_0_to_1, [&options](double share) { options.rule.energy = share; });
  CLI::Option* const error = add_decimal(
      command,
      {.name = "--error",
       .effect = "Keep the least ranks that lose at most this share of each norm: 0.1",
       .value = "E"},
      Decimals::above_0_below_1, [&options](double share) { options.rule.error = share; });
  CLI::Option* const budget = add_size_or_number(
      command,
      {.name = "--budget",
       .effect = "Share ranks out so that all factors together take these bytes (50MB) or so many "
                 "parameters (20000000), by what they take off the total error",
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
