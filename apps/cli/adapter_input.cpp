#include "adapter_input.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/lora/merge_plan.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "console.h"
#include "model_input.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

constexpr std::size_t shown_unmatched = 10;

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

}  // namespace

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
