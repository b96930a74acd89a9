// An adapter made from adapters: what is asked of it, and what became of each module.
#pragma once

#include "eckart/io/dtype.h"
#include "eckart/lora/adapter.h"
#include "eckart/lora/rank_rule.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace eckart {

struct RewriteOptions {
  /// How much to keep of each module; none: everything, exactly.
  std::optional<RankRule> rule = {};
  /// A budget in bytes of `adapter_model.safetensors`, in place of a rule: its header and what is
  /// carried as it is (biases, saved tensors) count.
  std::optional<std::uint64_t> budget_bytes = {};
  Index max_rank = 0;  // with `budget_bytes`; 0: no limit
  /// Of the factors, F32, F16 or BF16; none: the widest of the adapters', at least 16 bits.
  std::optional<Dtype> dtype = {};
  /// What the config says that the adapter is for; empty: what the first adapter's says.
  std::string base_model = {};
  /// Called with the elements of each module's factors when it is done, and of all.
  std::function<void(Index done, Index all)> on_progress = {};
};

struct RewrittenModule {
  std::string name;
  AdapterKind kind = AdapterKind::linear;
  Index d_out = 0;
  Index d_in = 0;
  Index n_experts = 1;
  Index rank_before = 0;  // of several adapters the sum
  Index rank_after = 0;   // 0: dropped, because its delta is nothing, or the budget had no room
  double norm = 0;        // of the delta, Frobenius; of experts together
  /// Share of the squared norm that the components kept hold, before rounding; 1 where norm is 0.
  double energy_kept = 1;
  /// ||written delta - delta||_F / norm, the factors as the file's dtype has them; 0 where norm is 0.
  double relative_error = 0;
};

struct RewrittenAdapter {
  std::vector<RewrittenModule> modules;  // in natural order
  Dtype dtype = Dtype::f32;
  Index parameters_before = 0;  // of the factors
  Index parameters_after = 0;
  double norm = 0;  // all deltas together: root of the sum of squares
  double energy_kept = 1;
  double relative_error = 0;
  Index n_saved = 0;               // tensors carried as they are
  Index n_resumed = 0;             // modules that a run which was cut off had finished
  bool is_copy = false;            // nothing had to be computed: the files are the adapter's own
  std::vector<std::string> notes;  // what a user has to know, a sentence each
};

}  // namespace eckart
