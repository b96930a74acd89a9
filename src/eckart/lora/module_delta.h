// The delta of one module on its way from one adapter to another. Included by the library alone.
#pragma once

#include "eckart/lora/adapter.h"
#include "eckart/lora/adapter_writer.h"
#include "eckart/lora/rewritten_adapter.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace eckart::detail {

struct ModuleDelta {
  std::string name;
  AdapterKind kind = AdapterKind::linear;
  std::vector<AdapterFactors> factors;     // one; of experts one each, all of one rank
  std::optional<Tensor<float>> bias = {};  // with its scale multiplied in
  std::vector<Index> kernel = {};          // as NewModule's
};

/// Reads a module, all experts. Memory: its factors in float.
ModuleDelta load_delta(const Adapter& adapter, const AdapterModule& module);

/// `weight` times the delta, with weight and scale multiplied into the factors: 1 changes no bit, a
/// power of 2 none but exponents, and others are rounded once, in b. Exponents are shared out so that
/// the largest entries of both factors are alike: neither underflows while the other has room.
ModuleDelta scaled(ModuleDelta delta, double weight);
/// The sum of deltas whose scales are 1 (see `scaled`): factors side by side. All have one kind, one
/// shape, one kernel.
ModuleDelta concatenated(std::vector<ModuleDelta> deltas);

/// Something that gives a module's delta, twice where a budget is to be shared out. Its sizes are
/// known before it is loaded.
struct DeltaSource {
  RewrittenModule sizes;  // name, kind, d_out, d_in, n_experts, rank_before
  std::function<ModuleDelta()> load;
};

/// Writes every module at the rank that the options say, in turn, and adds what became of it to
/// `result`; modules of rank 0 are left out. `operation` is how messages call it. Memory: one module,
/// and under a budget all singular values.
/// Throws ArgumentError when nothing is left, or a number is too large for the dtype.
void write_deltas(std::string_view operation, const std::vector<DeltaSource>& sources,
                  const RewriteOptions& options, AdapterWriter& writer, RewrittenAdapter& result);

}  // namespace eckart::detail
