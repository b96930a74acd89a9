// The options that say how much of each matrix an adapter keeps.
#pragma once

#include "eckart/lora/rank_rule.h"

#include <optional>

#include <CLI/App.hpp>

namespace eckart::cli {

struct RankOptions {
  RankRule rule;
  std::optional<Index> budget_bytes;

  bool is_given() const {
    return rule.rank > 0 || rule.energy > 0 || rule.error > 0 || rule.budget || budget_bytes;
  }
};

/// Adds `--rank`, `--energy`, `--error`, `--budget` (one of them at most) and `--max-rank`.
void add_rank_options(CLI::App& command, RankOptions& options);

/// Throws UsageError when `--max-rank` stands without one of the others.
void check_rank_options(const RankOptions& options);

}  // namespace eckart::cli
