#include "adapter_input.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/merge_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "console.h"
#include "model_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr std::size_t shown_unmatched = 10;

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

std::vector<double> parse_weights(const std::string& text) {
  std::vector<double> weights;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    double weight = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, weight);
    if (error != std::errc{} || stop != text.data() + end || !std::isfinite(weight)) {
      throw_usage_error("--weights is '" + text + "', but must be numbers with commas between them",
                        "one for each adapter: 1,0.5");
    }
    weights.push_back(weight);
    begin = end + 1;
  }
  return weights;
}

}  // namespace

void add_weights(CLI::App& app, std::vector<double>& weights) {
  app.add_option_function<std::string>(
         "--weights", [&weights](const std::string& text) { weights = parse_weights(text); },
         "What each adapter's delta is multiplied by, such as 1,0.5 (default: 1 each)")
      ->type_name("W,…");
}

void check_weights(const std::vector<double>& weights, std::size_t n_adapters) {
  if (weights.empty() || weights.size() == n_adapters) return;
  throw_usage_error(fmt::format("--weights has {}, but there {} {}: one each is needed",
                                counted(weights.size(), "weight"), n_adapters == 1 ? "is" : "are",
                                counted(n_adapters, "adapter")));
}

std::string unmatched_text(const std::vector<Adapter::Unmatched>& unmatched) {
  std::string text;
  const std::size_t n = std::min(shown_unmatched, unmatched.size());
  for (std::size_t i = 0; i < n; ++i) {
    text += "  " + printable(unmatched[i].name);
    const std::string closest = joined(unmatched[i].closest);
    text += closest.empty() ? "\n" : " (closest: " + closest + ")\n";
  }
  if (unmatched.size() > n) text += fmt::format("  and {} more\n", unmatched.size() - n);
  return text;
}

Json unmatched_json(const std::vector<Adapter::Unmatched>& unmatched) {
  Json list = Json::array();
  for (const auto& [name, closest] : unmatched) {
    list.push_back({{"name", name}, {"closest", closest}});
  }
  return list;
}

std::string warnings_text(const Adapter& adapter) {
  std::string text;
  for (const Finding& finding : adapter.warnings().all()) {
    text += yellow("warning") + "  ";
    if (!finding.tensor.empty()) text += "tensor \"" + printable(finding.tensor) + "\": ";
    text += finding.message + "\n";
    if (!finding.hint.empty()) text += "  hint: " + finding.hint + "\n";
  }
  return text;
}

Json warnings_json(const Adapter& adapter) {
  Json list = Json::array();
  for (const Finding& finding : adapter.warnings().all()) {
    list.push_back({{"rule", finding.rule},
                    {"tensor", finding.tensor.empty() ? Json(nullptr) : Json(finding.tensor)},
                    {"message", finding.message},
                    {"hint", finding.hint.empty() ? Json(nullptr) : Json(finding.hint)}});
  }
  return list;
}

void take_names_of_base(std::vector<Adapter>& adapters, const std::string& path) {
  const ModelInput base = open_model_with_checkpoint(path);
  const std::vector<std::string> names = mergeable_names(
      *base.checkpoint, base.tensors, base.architecture ? &*base.architecture : nullptr,
      base.config ? &*base.config : nullptr);
  for (Adapter& adapter : adapters) {
    const std::vector<Adapter::Unmatched> unmatched = adapter.resolve_names(names);
    if (unmatched.empty()) continue;
    const std::string closest = joined(unmatched.front().closest);
    throw_argument_error(
        fmt::format("lora: {} of {} fits no tensor of {}", printable(unmatched.front().name),
                    printable_path(adapter.path().string()), printable_path(path)),
        closest.empty() ? "" : "the closest are " + closest);
  }
}

std::string adapter_title(const Adapter& adapter) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(adapter.path(), error);
  const std::string name = (error ? adapter.path() : whole).filename().string();
  return printable(name.empty() ? adapter.path().string() : name);
}

}  // namespace eckart::cli
