#include "lora_extract_report.h"

#include "eckart/io/findings.h"
#include "eckart/model/tensor_names.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "console.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

std::string relative(double part, double whole) {
  return whole > 0 ? fmt::format("{:.3g}", part / whole) : "0";
}

// Tensors whose names differ in numbers alone, with one fate and one reason.
struct Group {
  std::string name;
  ExtractFate fate = ExtractFate::unchanged;
  std::string reason;
  Shape shape;
  Index count = 0;
  Index least_rank = 0;
  Index most_rank = 0;
  double base = 0;  // norms of all together
  double difference = 0;
  double certified = 0;
  double error = 0;
};

std::vector<Group> groups_of(const ExtractReport& report) {
  std::vector<Group> groups;
  std::vector<NameFold> folds;
  std::map<std::string, std::size_t> by_key;
  for (const ExtractedTensor& tensor : report.tensors) {
    const NameTemplate name = name_template(tensor.name);
    const std::string key = name.text + '\n' + std::string(to_string(tensor.fate)) + '\n' +
                            tensor.reason + '\n' + sizes_to_string(tensor.shape);
    const auto [found, is_new] = by_key.emplace(key, groups.size());
    if (is_new) {
      folds.emplace_back(name.text);
      groups.push_back({.name = {},
                        .fate = tensor.fate,
                        .reason = tensor.reason,
                        .shape = tensor.shape,
                        .least_rank = tensor.rank});
    }
    Group& group = groups[found->second];
    folds[found->second].add(name.numbers);
    ++group.count;
    group.least_rank = std::min(group.least_rank, tensor.rank);
    group.most_rank = std::max(group.most_rank, tensor.rank);
    group.base = std::hypot(group.base, tensor.base_norm);
    group.difference = std::hypot(group.difference, tensor.difference_norm);
    group.certified = std::hypot(group.certified, tensor.certified_error);
    group.error = std::hypot(group.error, tensor.error);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].name = printable(folds[i].name());
  return groups;
}

std::string rank_text(const Group& group) {
  if (group.fate != ExtractFate::low_rank || group.most_rank == 0) return "";
  if (group.least_rank == group.most_rank) return std::to_string(group.most_rank);
  return fmt::format("{}-{}", group.least_rank, group.most_rank);
}

std::string fate_text(const Group& group) {
  std::string text(to_string(group.fate));
  return group.reason.empty() ? text : text + ": " + printable(group.reason);
}

std::string notes_text(const ExtractReport& report) {
  std::string text;
  for (const std::string& note : report.notes) text += "note: " + printable(note, 400) + "\n";
  return text;
}

std::string counts_text(const ExtractReport& report) {
  std::map<ExtractFate, std::uint64_t> counts;
  for (const ExtractedTensor& tensor : report.tensors) ++counts[tensor.fate];
  std::string text;
  for (const auto& [fate, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), to_string(fate));
  }
  return counted(report.tensors.size(), "tensor") + ": " + text + "\n";
}

}  // namespace

std::string extract_text(const ExtractReport& report) {
  std::string text =
      fmt::format("{} numbers, {} of tensors in {}; largest rank {}\n", grouped(report.parameters),
                  bytes_text(report.bytes), to_string(report.dtype), report.rank);
  if (report.n_resumed > 0) {
    text += counted(static_cast<std::uint64_t>(report.n_resumed), "module") +
            " taken over from a run that was cut off\n";
  }
  text += counts_text(report);
  text += fmt::format("difference  {} of the base's norm\n",
                      relative(report.difference_norm, report.base_norm));
  text += fmt::format("error       {} of the difference, after rounding\n",
                      relative(report.error, report.difference_norm));
  if (report.left_out > 0) {
    text += fmt::format("left out    {} of the difference\n",
                        relative(report.left_out, report.difference_norm));
  }
  Table table({{"tensor"},
               {"shape"},
               {"rank", Table::Align::right},
               {"energy kept", Table::Align::right},
               {"certified", Table::Align::right},
               {"error", Table::Align::right},
               {"fate"}});
  for (const Group& group : groups_of(report)) {
    const bool is_low_rank = group.fate == ExtractFate::low_rank && group.most_rank > 0;
    const double lost = group.difference > 0 ? group.certified / group.difference : 0;
    table.add({group.name, sizes_to_string(group.shape), rank_text(group),
               is_low_rank ? fmt::format("{:.2f}%", 100 * (1 - lost * lost)) : "",
               is_low_rank ? relative(group.certified, group.difference) : "",
               group.fate == ExtractFate::unchanged ? "" : relative(group.error, group.difference),
               fate_text(group)});
  }
  return text + "\n" + table.text() +
         "\nerrors are shares of the tensor's difference: certified as it was found, and after "
         "rounding\n" +
         notes_text(report);
}

std::string preview_text(const ExtractReport& report) {
  std::string text = counts_text(report);
  text += fmt::format("difference  {} of the base's norm\n",
                      relative(report.difference_norm, report.base_norm));
  Table table({{"tensor"}, {"shape"}, {"change", Table::Align::right}, {"fate"}});
  for (const Group& group : groups_of(report)) {
    table.add({group.name, sizes_to_string(group.shape),
               group.base > 0 ? relative(group.difference, group.base) : "", fate_text(group)});
  }
  return text + "\n" + table.text() + "\nchange: of the base's norm\n" + notes_text(report);
}

}  // namespace eckart::cli
