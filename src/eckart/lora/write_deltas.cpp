// Modules written one by one, at the ranks that a rule or a budget gives them.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/linalg/norms.h"
#include "eckart/lora/adapter_parts.h"
#include "eckart/lora/factored_svd.h"
#include "eckart/lora/module_delta.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace eckart::detail {
namespace {

using Json = nlohmann::ordered_json;

Index cost_of_rank(const RewrittenModule& sizes) {
  return sizes.n_experts * (sizes.d_out + sizes.d_in);
}

void add_squares(const std::vector<double>& more, std::vector<double>& squares) {
  squares.resize(std::max(squares.size(), more.size()), 0);
  for (std::size_t i = 0; i < more.size(); ++i) squares[i] += more[i];
}

// Of experts, which share one rank, the sums over all.
void add_squares(const Tensor<double>& s, std::vector<double>& squares) {
  squares.resize(std::max(squares.size(), static_cast<std::size_t>(s.count())), 0);
  for (Index i = 0; i < s.count(); ++i) squares[static_cast<std::size_t>(i)] += s(i) * s(i);
}

bool is_nothing(const std::optional<Tensor<float>>& bias) {
  return !bias ||
         std::all_of(bias->data(), bias->data() + bias->count(), [](float x) { return x == 0; });
}

// What of a delta is rounding: this much of the sum of its terms' lengths. Terms that cancel, as those
// of an adapter less itself, leave some 2^-50.
constexpr double rounding = 0x1p-44;

double length_of_terms(const std::vector<AdapterFactors>& factors) {
  double sum = 0;
  for (const auto& [b, a, scale] : factors) {
    const Tensor<float> of_b = vector_norms(b, Axis(0));
    const Tensor<float> of_a = vector_norms(a, Axis(1));
    for (Index i = 0; i < of_b.count(); ++i) {
      sum += std::abs(scale) * static_cast<double>(of_b(i)) * static_cast<double>(of_a(i));
    }
  }
  return sum;
}

// Takes off what is rounding: the whole, or single values behind it. A budget would give ranks to
// them.
void clear_rounding(const std::vector<AdapterFactors>& factors, std::vector<double>& squares) {
  const double floor = std::pow(rounding * length_of_terms(factors), 2);
  double all = 0;
  for (double& square : squares) {
    if (square <= floor) square = 0;
    all += square;
  }
  if (all <= floor) squares.clear();
}

NewModule new_module(ModuleDelta delta) {
  NewModule module;
  module.name = std::move(delta.name);
  module.kind = delta.kind;
  module.bias = std::move(delta.bias);
  module.kernel = std::move(delta.kernel);
  return module;
}

// The delta as it is, its scale in the factors.
NewModule whole(ModuleDelta delta) {
  delta = scaled(std::move(delta), 1);
  std::vector<AdapterFactors> factors = std::move(delta.factors);
  NewModule module = new_module(std::move(delta));
  for (AdapterFactors& one : factors) {
    module.b.push_back(std::move(one.b));
    module.a.push_back(std::move(one.a));
  }
  return module;
}

// Zeros behind b's columns and below a's rows.
void fill_to_rank(NewModule& module, Index rank) {
  for (std::size_t i = 0; i < module.b.size(); ++i) {
    const Tensor<float>&b = module.b[i], &a = module.a[i];
    const Index known = a.size(0);
    if (known >= rank) continue;
    Tensor<float> wide({b.size(0), rank}), high({rank, a.size(1)});
    for (Index row = 0; row < b.size(0); ++row) {
      std::copy_n(b.data() + row * known, known, wide.data() + row * rank);
    }
    std::copy_n(a.data(), a.count(), high.data());
    module.b[i] = std::move(wide);
    module.a[i] = std::move(high);
  }
}

// Squared distances of what is written from what was, over all experts.
double squared_change(const NewModule& written, const std::vector<AdapterFactors>& before) {
  double sum = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& [b, a, scale] = before[i];
    sum += std::pow(product_distance({written.b[i], written.a[i], 1}, {b, a, scale}), 2);
  }
  return sum;
}

bool is_finite(const Tensor<float>& a) {
  return std::all_of(a.data(), a.data() + a.count(), [](float x) { return std::isfinite(x); });
}

[[noreturn]] void throw_too_large(std::string_view operation, const std::string& name,
                                  Dtype dtype) {
  throw_argument_error(fmt::format("{}: a factor of {} has an entry that is too large for {}",
                                   operation, printable(name), to_string(dtype)),
                       dtype == Dtype::f16 ? "--dtype BF16 and F32 hold it" : "");
}

void check_representable(std::string_view operation, const NewModule& module, Dtype dtype) {
  for (const std::vector<Tensor<float>>* factors : {&module.b, &module.a}) {
    if (!std::all_of(factors->begin(), factors->end(), is_finite)) {
      throw_too_large(operation, module.name, dtype);
    }
  }
}

// Weights may have made them too large for what they are computed in.
void check_representable(std::string_view operation, const ModuleDelta& delta) {
  for (const AdapterFactors& factors : delta.factors) {
    if (!is_finite(factors.b) || !is_finite(factors.a)) {
      throw_too_large(operation, delta.name, Dtype::f32);
    }
  }
}

Json to_json(const RewrittenModule& module) {
  return {{"rank", module.rank_after},
          {"norm", module.norm},
          {"energy_kept", module.energy_kept},
          {"relative_error", module.relative_error}};
}

void read_json(const std::string& text, RewrittenModule& module) {
  const Json json = Json::parse(text);
  module.rank_after = json.at("rank").get<Index>();
  module.norm = json.at("norm").get<double>();
  module.energy_kept = json.at("energy_kept").get<double>();
  module.relative_error = json.at("relative_error").get<double>();
}

class Rewriting {
 public:
  Rewriting(std::string_view operation, const RewriteOptions& options, AdapterWriter& writer,
            RewrittenAdapter& result)
      : operation_(operation), options_(options), writer_(writer), result_(result) {}

  void run(const std::vector<DeltaSource>& sources) {
    for (const DeltaSource& source : sources) {
      elements_ += source.sizes.rank_before * cost_of_rank(source.sizes);
    }
    find_stacks(sources);
    std::vector<Index> shared(sources.size(), -1);
    if (options_.rule && options_.rule->budget) {
      elements_ *= 2;
      shared = share_budget(sources);
    } else {
      find_stacked_rank(sources);
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      RewrittenModule module = sources[i].sizes;
      if (writer_.has(module.name)) {
        read_json(writer_.reports().at(module.name), module);
        ++result_.n_resumed;
      } else {
        write(sources[i].load(), shared[i], module);
      }
      result_.modules.push_back(module);
      advance(sources[i]);
    }
  }

 private:
  void advance(const DeltaSource& source) {
    if (!options_.on_progress) return;
    options_.on_progress(source.sizes.rank_before * cost_of_rank(source.sizes), elements_);
  }

  // PEFT stacks the experts of a layer that files hold one by one, and their router: of one rank.
  bool is_stacked(const std::string& name) const {
    constexpr std::string_view gate = ".gate";
    if (!expert_stack(name).empty()) return true;
    return name.ends_with(gate) &&
           stacks_.count(name.substr(0, name.size() - gate.size()) + ".experts") != 0;
  }

  void find_stacks(const std::vector<DeltaSource>& sources) {
    for (const DeltaSource& source : sources) {
      if (const auto stack = expert_stack(source.sizes.name); !stack.empty())
        stacks_.emplace(stack);
    }
  }

  RankCandidate candidate_of(const ModuleDelta& delta, const RewrittenModule& sizes) const {
    RankCandidate candidate{.squares = {}, .parameters = cost_of_rank(sizes)};
    for (const auto& [b, a, scale] : delta.factors) {
      add_squares(factored_svd_values(b, a, scale), candidate.squares);
    }
    clear_rounding(delta.factors, candidate.squares);
    return candidate;
  }

  // The largest that one of what is stacked needs, where each has its own.
  void find_stacked_rank(const std::vector<DeltaSource>& sources) {
    for (const DeltaSource& source : sources) {
      if (!is_stacked(source.sizes.name)) continue;
      Index rank = source.sizes.rank_before;
      if (options_.rule) {
        const RankCandidate candidate = candidate_of(source.load(), source.sizes);
        rank = choose_ranks(operation_, {candidate}, *options_.rule).front();
      }
      stacked_rank_ = std::max(stacked_rank_, rank);
    }
  }

  std::vector<Index> share_budget(const std::vector<DeltaSource>& sources) {
    std::vector<RankCandidate> candidates;
    std::vector<std::size_t> candidate_at;  // one a source
    std::optional<std::size_t> stack;
    Index least = 0;
    for (const DeltaSource& source : sources) {
      const ModuleDelta delta = source.load();
      RankCandidate candidate = candidate_of(delta, source.sizes);
      // A bias needs its module; factors of 0 are the least of one.
      if (!is_nothing(delta.bias)) candidate.least_rank = 1;
      least += candidate.least_rank * candidate.parameters;
      if (is_stacked(source.sizes.name) && stack) {
        RankCandidate& all = candidates[*stack];
        add_squares(candidate.squares, all.squares);
        all.parameters += candidate.parameters;
        all.least_rank = std::max(all.least_rank, candidate.least_rank);
      } else {
        if (is_stacked(source.sizes.name)) stack = candidates.size();
        candidates.push_back(std::move(candidate));
      }
      candidate_at.push_back(is_stacked(source.sizes.name) ? *stack : candidates.size() - 1);
      advance(source);
    }
    if (*options_.rule->budget < least) {
      throw_argument_error(
          fmt::format("{}: the budget has room for {} parameters, but the modules that have a bias "
                      "take {} at rank 1",
                      operation_, *options_.rule->budget, least));
    }
    const std::vector<Index> ranks = choose_ranks(operation_, candidates, *options_.rule);
    std::vector<Index> shared;
    for (const std::size_t at : candidate_at) shared.push_back(ranks[at]);
    if (stack) stacked_rank_ = ranks[*stack];
    return shared;
  }

  Index rank_of(const ModuleDelta& delta, const RankCandidate& candidate, Index shared,
                const RewrittenModule& report) const {
    Index rank = report.norm == 0 ? 0 : report.rank_before;
    if (options_.rule) {
      rank = shared >= 0 ? shared : choose_ranks(operation_, {candidate}, *options_.rule).front();
    }
    // A bias needs its module; factors of 0 are the least of one.
    return rank == 0 && !is_nothing(delta.bias) ? 1 : rank;
  }

  // `shared`: the rank under a budget, or -1.
  void write(ModuleDelta delta, Index shared, RewrittenModule& report) {
    check_representable(operation_, delta);
    const std::vector<AdapterFactors> before = delta.factors;
    std::vector<Svd<double>> svds;
    RankCandidate candidate{.squares = {}, .parameters = cost_of_rank(report)};
    for (const auto& [b, a, scale] : before) {
      if (options_.rule) {
        svds.push_back(factored_svd(b, a, scale));
        add_squares(svds.back().s, candidate.squares);
      } else {
        add_squares(Tensor<double>::vector({product_norm({b, a, scale})}), candidate.squares);
      }
    }
    const auto sum = [&](Index from) {
      double total = 0;
      for (std::size_t i = candidate.squares.size(); i-- > static_cast<std::size_t>(from);) {
        total += candidate.squares[i];
      }
      return total;
    };
    clear_rounding(before, candidate.squares);
    report.norm = std::sqrt(sum(0));
    const Index rank = rank_of(delta, candidate, shared, report);
    // PEFT needs all of a stack: those that are nothing are zeros.
    const Index written_rank = is_stacked(report.name) ? std::max(rank, stacked_rank_) : rank;
    report.rank_after = written_rank;
    if (written_rank == 0) {
      report.energy_kept = report.norm == 0 ? 1 : 0;
      report.relative_error = report.norm == 0 ? 0 : 1;
      return;
    }
    NewModule module;
    if (options_.rule && rank < report.rank_before) {
      module = new_module(std::move(delta));
      for (const Svd<double>& svd : svds) {
        auto [b, a] = balanced_factors(svd, std::min(rank, svd.s.count()));
        module.b.push_back(std::move(b));
        module.a.push_back(std::move(a));
      }
      if (report.norm > 0) report.energy_kept = 1 - sum(rank) / sum(0);
    } else {
      module = whole(std::move(delta));
    }
    fill_to_rank(module, written_rank);
    const NewModule written = rounded(module, result_.dtype);
    check_representable(operation_, written, result_.dtype);
    if (report.norm > 0) {
      report.relative_error = std::sqrt(squared_change(written, before)) / report.norm;
    }
    writer_.add(module, to_json(report).dump());
  }

  std::string_view operation_;
  const RewriteOptions& options_;
  AdapterWriter& writer_;
  RewrittenAdapter& result_;
  Index elements_ = 0;
  std::set<std::string, std::less<>> stacks_;
  Index stacked_rank_ = 0;
};

// Figures of all modules together.
void add_totals(RewrittenAdapter& result) {
  double total = 0, kept = 0, lost = 0;
  for (const RewrittenModule& module : result.modules) {
    const double square = module.norm * module.norm;
    total += square;
    kept += module.energy_kept * square;
    lost += std::pow(module.relative_error, 2) * square;
    result.parameters_before += module.rank_before * cost_of_rank(module);
    result.parameters_after += module.rank_after * cost_of_rank(module);
  }
  result.norm = std::sqrt(total);
  if (total == 0) return;
  result.energy_kept = kept / total;
  result.relative_error = std::sqrt(lost / total);
}

}  // namespace

void write_deltas(std::string_view operation, const std::vector<DeltaSource>& sources,
                  const RewriteOptions& options, AdapterWriter& writer, RewrittenAdapter& result) {
  Rewriting(operation, options, writer, result).run(sources);
  add_totals(result);
  const bool any = std::any_of(result.modules.begin(), result.modules.end(),
                               [](const RewrittenModule& module) { return module.rank_after > 0; });
  if (any) return;
  throw_argument_error(
      std::string(operation) + ": nothing is left: " +
      (result.norm == 0 ? "every delta is 0" : "the budget has no room for a rank of any module"));
}

}  // namespace eckart::detail
