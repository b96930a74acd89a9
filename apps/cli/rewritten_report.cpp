#include "rewritten_report.h"

#include "eckart/io/findings.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "array_output.h"
#include "console.h"
#include "spectrum_report.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

std::string shape_text(const RewrittenModule& module) {
  const std::string shape = fmt::format("{}x{}", module.d_out, module.d_in);
  return module.n_experts > 1 ? fmt::format("{} x {}", module.n_experts, shape) : shape;
}

// Modules whose names differ in numbers alone, told together.
struct Line {
  NameFold names;
  std::string shape;
  std::vector<const RewrittenModule*> modules;
};

std::vector<Line> lines_of(const RewrittenAdapter& result) {
  std::vector<Line> lines;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const RewrittenModule& module : result.modules) {
    if (module.rank_after == 0) continue;
    const NameTemplate name = name_template(module.name);
    const std::string shape = shape_text(module);
    const auto [at, is_new] = known.emplace(std::pair(name.text, shape), lines.size());
    if (is_new) lines.push_back({NameFold(name.text), shape, {}});
    lines[at->second].names.add(name.numbers);
    lines[at->second].modules.push_back(&module);
  }
  return lines;
}

// `16`, or `4..16` where modules differ.
template <class Member>
std::string range_text(const Line& line, Member member, const auto& text) {
  const auto less = [&](const RewrittenModule* a, const RewrittenModule* b) {
    return a->*member < b->*member;
  };
  const auto [low, high] = std::minmax_element(line.modules.begin(), line.modules.end(), less);
  const std::string least = text((*low)->*member), most = text((*high)->*member);
  return least == most ? least : least + ".." + most;
}

std::string share_text(double share) { return fmt::format("{:.4g}%", 100 * share); }

std::string table_text(const RewrittenAdapter& result) {
  using Align = Table::Align;
  Table table({{"module"},
               {"shape", Align::right},
               {"rank before", Align::right},
               {"after", Align::right},
               {"energy kept", Align::right},
               {"error", Align::right}});
  const auto number = [](Index rank) { return grouped(rank); };
  for (const Line& line : lines_of(result)) {
    table.add({printable(line.names.name()), line.shape,
               range_text(line, &RewrittenModule::rank_before, number),
               range_text(line, &RewrittenModule::rank_after, number),
               range_text(line, &RewrittenModule::energy_kept, share_text),
               range_text(line, &RewrittenModule::relative_error, figure)});
  }
  return table.empty() ? "" : "\n" + table.text();
}

std::string dropped_text(const RewrittenAdapter& result) {
  std::string text;
  for (const RewrittenModule& module : result.modules) {
    if (module.rank_after > 0) continue;
    text +=
        fmt::format("left out  {}: {}\n", printable(module.name),
                    module.norm == 0 ? "its delta is 0"
                                     : fmt::format("the budget has no room for a rank of it; its "
                                                   "norm is {}",
                                                   figure(module.norm)));
  }
  return text;
}

}  // namespace

std::string rewritten_text(const std::string& output, const RewrittenAdapter& result) {
  std::string text =
      bold(printable_path(output)) + "   " + counted(result.modules.size(), "module");
  if (result.is_copy) {
    return text + ", copied: nothing of the adapter changes\n";
  }
  const auto bytes = [&](Index parameters) {
    return bytes_text(static_cast<std::uint64_t>(parameters * bits(result.dtype) / 8));
  };
  text += fmt::format(", {} parameters -> {}   {} {}\n", grouped(result.parameters_before),
                      grouped(result.parameters_after), bytes(result.parameters_after),
                      to_string(result.dtype));
  text += fmt::format("energy kept {}, error {} of the norm after rounding to {}\n",
                      share_text(result.energy_kept), figure(result.relative_error),
                      to_string(result.dtype));
  if (result.n_saved > 0) {
    text += counted(static_cast<std::uint64_t>(result.n_saved), "tensor") + " carried as saved\n";
  }
  if (result.n_resumed > 0) {
    text += counted(static_cast<std::uint64_t>(result.n_resumed), "module") +
            " finished by a run before this one\n";
  }
  text += table_text(result);
  text += dropped_text(result);
  for (const std::string& note : result.notes) text += "note  " + printable_path(note) + "\n";
  return text;
}

Json rewritten_json(const std::string& output, const RewrittenAdapter& result) {
  Json modules = Json::array();
  for (const RewrittenModule& module : result.modules) {
    modules.push_back({{"name", module.name},
                       {"kind", to_string(module.kind)},
                       {"d_out", module.d_out},
                       {"d_in", module.d_in},
                       {"experts", module.n_experts},
                       {"rank_before", module.rank_before},
                       {"rank_after", module.rank_after},
                       {"norm", number_json(module.norm)},
                       {"energy_kept", number_json(module.energy_kept)},
                       {"relative_error", number_json(module.relative_error)}});
  }
  return {{"output", output},
          {"is_copy", result.is_copy},
          {"dtype", to_string(result.dtype)},
          {"parameters_before", result.parameters_before},
          {"parameters_after", result.parameters_after},
          {"norm", number_json(result.norm)},
          {"energy_kept", number_json(result.energy_kept)},
          {"relative_error", number_json(result.relative_error)},
          {"saved", result.n_saved},
          {"resumed", result.n_resumed},
          {"notes", result.notes},
          {"modules", modules}};
}

}  // namespace eckart::cli
