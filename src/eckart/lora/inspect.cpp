#include "eckart/lora/inspect.h"

#include "eckart/lora/factored_svd.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace eckart {
namespace {

// Elements of the base that are in memory at a time: 4 MiB of floats.
constexpr Index piece_elements = Index{1} << 20;

Tensor<double> all_values(const Adapter& adapter, const AdapterModule& module) {
  std::vector<double> values;
  for (Index expert = 0; expert < module.n_experts; ++expert) {
    const AdapterFactors factors = load_factors(adapter, module, expert);
    const Tensor<double> s = factored_svd_values(factors.b, factors.a, factors.scale);
    values.insert(values.end(), s.data(), s.data() + s.count());
  }
  std::sort(values.begin(), values.end(), std::greater<>());
  const Shape shape{static_cast<Index>(values.size())};
  return Tensor<double>(shape, values);
}

void read_figures(ModuleSpectrum& found) {
  const double* const s = found.values.data();
  const Index n = found.values.count();
  found.spectral_norm = n == 0 ? 0 : s[0];
  if (found.spectral_norm == 0) return;
  // Shares of sigma_1, so that no square overflows or vanishes.
  double sum = 0;
  double squares = 0;
  for (Index i = 0; i < n; ++i) {
    const double share = s[i] / s[0];
    sum += share;
    squares += share * share;
  }
  found.frobenius_norm = s[0] * std::sqrt(squares);
  found.stable_rank = squares;
  double entropy = 0;
  for (Index i = 0; i < n; ++i) {
    const double p = s[i] / s[0] / sum;
    if (p > 0) entropy -= p * std::log(p);
  }
  found.effective_rank = std::exp(entropy);
  std::array<Index, energy_shares.size()> ranks{};
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    double held = 0;
    while (ranks[at] < n && held < energy_shares[at] * squares) {
      const double share = s[ranks[at]++] / s[0];
      held += share * share;
    }
  }
  found.energy_ranks = ranks;
  found.has_spike = n > 1 && s[0] >= spike_ratio * s[1];
}

double frobenius_norm_of(const Checkpoint& base, const LogicalTensor& tensor) {
  const Index rows = tensor.shape.rank() == 0 ? 1 : tensor.shape.size(0);
  const Index columns = rows == 0 ? 0 : tensor.shape.count() / rows;
  const Index step = std::max(Index{1}, piece_elements / std::max(Index{1}, columns));
  double squares = 0;
  for (Index first = 0; first < rows; first += step) {
    const Tensor<float> piece = load_weight_rows(base, tensor, first, std::min(step, rows - first));
    for (Index i = 0; i < piece.count(); ++i) {
      const auto x = static_cast<double>(piece.data()[i]);
      squares += x * x;
    }
  }
  return std::sqrt(squares);
}

Index count_of(const StoredTensor* tensor) { return tensor == nullptr ? 0 : tensor->shape.count(); }
std::uint64_t bytes_of(const StoredTensor* tensor) {
  return tensor == nullptr ? 0 : tensor->bytes();
}

}  // namespace

std::vector<ModuleSpectrum> inspect_adapter(const Adapter& adapter,
                                            const InspectAdapterOptions& options) {
  check_finite(adapter);
  std::unordered_map<std::string_view, const LogicalTensor*> base;
  if (options.base != nullptr && options.tensors != nullptr) {
    for (const LogicalTensor& tensor : *options.tensors) base.emplace(tensor.name, &tensor);
  }
  std::vector<ModuleSpectrum> result;
  result.reserve(adapter.modules().size());
  for (const AdapterModule& module : adapter.modules()) {
    ModuleSpectrum found{.values = all_values(adapter, module)};
    read_figures(found);
    for (const StoredTensor* tensor : {module.a, module.b, module.bias, module.magnitude}) {
      found.parameters += count_of(tensor);
      found.bytes += bytes_of(tensor);
    }
    auto matrix = base.find(module.name);
    const std::string weight = module.name + ".weight";
    if (matrix == base.end()) matrix = base.find(weight);
    if (matrix != base.end() && why_unreadable(*matrix->second).empty()) {
      const double norm = frobenius_norm_of(*options.base, *matrix->second);
      if (norm > 0) found.relative_norm = found.frobenius_norm / norm;
    }
    result.push_back(std::move(found));
    if (options.on_progress) {
      options.on_progress(static_cast<Index>(result.size()),
                          static_cast<Index>(adapter.modules().size()));
    }
  }
  return result;
}

}  // namespace eckart
