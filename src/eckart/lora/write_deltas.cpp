// Modules written one by one, at the ranks that a rule or a budget gives them.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/linalg/norms.h"
#include "eckart/lora/factored_svd.h"
#include "eckart/lora/module_delta.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
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
    std::vector<Index> shared;
    if (options_.rule && options_.rule->budget) {
      elements_ *= 2;
      shared = share_budget(sources);
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      RewrittenModule module = sources[i].sizes;
      if (writer_.has(module.name)) {
        read_json(writer_.reports().at(module.name), module);
        ++result_.n_resumed;
      } else {
        write(sources[i].load(), shared.empty() ? -1 : shared[i], module);
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

  std::vector<Index> share_budget(const std::vector<DeltaSource>& sources) {
    std::vector<RankCandidate> candidates;
    for (const DeltaSource& source : sources) {
      const ModuleDelta delta = source.load();
      RankCandidate candidate{.squares = {}, .parameters = cost_of_rank(source.sizes)};
      for (const auto& [b, a, scale] : delta.factors) {
        add_squares(factored_svd_values(b, a, scale), candidate.squares);
      }
      clear_rounding(delta.factors, candidate.squares);
      candidates.push_back(std::move(candidate));
      advance(source);
    }
    return choose_ranks(operation_, candidates, *options_.rule);
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
    const bool has_bias = !is_nothing(delta.bias);
    Index rank = report.rank_before;
    if (options_.rule) {
      rank = shared >= 0 ? shared : choose_ranks(operation_, {candidate}, *options_.rule).front();
    } else if (report.norm == 0) {
      rank = 0;
    }
    // A bias needs its module; factors of 0 are the least of one.
    if (rank == 0 && has_bias) rank = 1;
    report.rank_after = rank;
    if (rank == 0) {
      report.energy_kept = report.norm == 0 ? 1 : 0;
      report.relative_error = report.norm == 0 ? 0 : 1;
      return;
    }
    NewModule module;
    if (options_.rule && rank < report.rank_before) {
      module = new_module(std::move(delta));
      for (const Svd<double>& svd : svds) {
        auto [b, a] = balanced_factors(svd, rank);
        module.b.push_back(std::move(b));
        module.a.push_back(std::move(a));
      }
      if (report.norm > 0) report.energy_kept = 1 - sum(rank) / sum(0);
    } else {
      module = whole(std::move(delta));
    }
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
