#include "inspect_spectrum.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <vector>

namespace eckart::cli {
namespace {

// Whether a number is in `0..5` or `0, 2..4`.
bool is_listed(Index number, std::string_view ranges) {
  while (!ranges.empty()) {
    std::string_view range = ranges.substr(0, ranges.find(','));
    ranges.remove_prefix(std::min(range.size() + 1, ranges.size()));
    range.remove_prefix(std::min(range.find_first_not_of(' '), range.size()));
    Index first = 0;
    const char* const end = range.data() + range.size();
    const auto [next, error] = std::from_chars(range.data(), end, first);
    if (error != std::errc{}) return false;
    Index last = first;
    const std::string_view rest(next, static_cast<std::size_t>(end - next));
    if (rest.starts_with("..")) std::from_chars(next + 2, end, last);
    if (number >= first && number <= last) return true;
  }
  return false;
}

// Whether a tensor is one of those that a folded path stands for: `encoder.layer.{0..5}.mlp`.
bool is_of_path(std::string_view name, std::string_view path) {
  while (!path.empty()) {
    if (path.front() != '{') {
      if (name.empty() || name.front() != path.front()) return false;
      name.remove_prefix(1);
      path.remove_prefix(1);
      continue;
    }
    const std::size_t close = path.find('}');
    Index number = 0;
    const auto [next, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (close == std::string_view::npos || error != std::errc{}) return false;
    if (!is_listed(number, path.substr(1, close - 1))) return false;
    name.remove_prefix(static_cast<std::size_t>(next - name.data()));
    path.remove_prefix(close + 1);
  }
  return name.empty() || name == ".weight";
}

std::optional<double> median_of(std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

}  // namespace

NodeSpectrum spectrum_of(const SummaryNode& node, const CheckpointSpectrum& spectra) {
  if (!node.is_tensor) return {};
  std::vector<double> stable, effective, alpha;
  for (const MatrixSpectrum& one : spectra.matrices) {
    if (!is_of_path(one.matrix.tensor, node.path)) continue;
    const Spectrum& s = one.spectrum;
    if (s.stable_rank) stable.push_back(s.stable_rank->value);
    if (s.effective_rank) effective.push_back(s.effective_rank->value);
    if (s.power_law) alpha.push_back(s.power_law->alpha);
  }
  return {median_of(stable), median_of(effective), median_of(alpha)};
}

}  // namespace eckart::cli
