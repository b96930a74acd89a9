#include "eckart/lora/merge_errors.h"

#include "eckart/core/edit_distance.h"
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eckart {
namespace {

constexpr std::size_t n_closest = 3;

std::string closest_of(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& one : names) ranked.emplace_back(edit_distance(name, one), &one);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(n_closest, ranked.size()); ++i) {
    text += (i == 0 ? "" : ", ") + printable(*ranked[i].second);
  }
  return text;
}

std::string made_for(const Adapter& adapter) {
  const std::string& base = adapter.config().base_model;
  return base.empty() ? "" : "the adapter was made for " + printable(base);
}

}  // namespace

std::string shown(const Adapter& adapter) { return printable_path(adapter.path().string()); }

std::string sizes_of(const AdapterModule& module) {
  const std::string sizes = std::to_string(module.d_out) + "x" + std::to_string(module.d_in);
  if (module.kind != AdapterKind::experts) return sizes + " (B A)";
  return std::to_string(module.n_experts) + " experts of " + sizes + " (B A)";
}

void throw_unmatched(const Adapter& adapter, const std::string& name,
                     const std::vector<std::string>& names) {
  const std::string origin = made_for(adapter);
  throw_argument_error(
      "merge: " + shown(adapter) + " changes " + printable(name) +
          ", but the base has no tensor of that name",
      "closest are " + closest_of(name, names) + (origin.empty() ? "" : "; " + origin));
}

void fail_shape(const Adapter& adapter, const PlannedTensor& tensor, const std::string& sizes) {
  throw_shape_error("merge: for " + printable(tensor.name) + " " + shown(adapter) + " holds " +
                        sizes + ", but the base's is " + sizes_to_string(tensor.shape),
                    made_for(adapter));
}

void fail_quantized(const PlannedTensor& tensor) {
  throw_argument_error("merge: " + printable(tensor.name) + " is " +
                           printable(tensor.base->storage) +
                           ", but only F8 with scales can be taken out of its quantization",
                       "merge into the model that it was quantized from");
}

}  // namespace eckart
