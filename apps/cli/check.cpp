// eckart check: every rule of the formats, every finding with its place.
#include "eckart/io/findings.h"
#include "eckart/io/validate.h"

#include <memory>
#include <string>
#include <vector>

#include "commands.h"
#include "console.h"
#include "json_output.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace eckart::cli {
namespace {

Json to_json(const Finding& finding) {
  const auto offset = [](const std::optional<std::uint64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json = {{"severity", finding.severity == Severity::error ? "error" : "warning"},
               {"file", finding.file},
               {"tensor", finding.tensor.empty() ? Json(nullptr) : Json(finding.tensor)},
               {"begin", offset(finding.begin)},
               {"end", offset(finding.end)},
               {"rule", finding.rule},
               {"message", finding.message}};
  if (!finding.hint.empty()) json["hint"] = finding.hint;
  return json;
}

// `tensor w, bytes 8-114`, with what is known of it.
std::string place_of(const Finding& finding) {
  std::string place;
  if (!finding.tensor.empty()) place = "tensor " + printable(finding.tensor);
  if (finding.begin) {
    place += place.empty() ? "" : ", ";
    place += finding.end && *finding.end != *finding.begin + 1
                 ? fmt::format("bytes {}-{}", *finding.begin, *finding.end)
                 : fmt::format("byte {}", *finding.begin);
  }
  return place;
}

void print_findings(const Findings& findings) {
  std::string file;
  for (const Finding& finding : findings.all()) {
    if (finding.file != file) {
      file = finding.file;
      print(bold(printable_path(file)) + "\n");
    }
    const std::string place = place_of(finding);
    print(fmt::format("  {} {}{}\n    {}\n",
                      finding.severity == Severity::error ? red("error  ") : yellow("warning"),
                      finding.rule, place.empty() ? "" : "  " + dim(place), finding.message));
    if (!finding.hint.empty()) print("    hint: " + finding.hint + "\n");
  }
  if (findings.omitted() > 0) {
    print(fmt::format("  and {} more of the same rules\n", grouped(findings.omitted())));
  }
}

// What was looked at, and what was not: an `ok` promises no more.
std::string ok_text(const std::string& path, const Validation& validation) {
  const std::string_view noun = validation.is_checkpoint ? "tensor" : "array";
  return fmt::format("{}: ok: {}, {}, {}; {}\n", printable_path(path),
                     counted(validation.n_files, "file"), counted(validation.n_arrays, noun),
                     bytes_text(validation.bytes),
                     validation.has_read_values ? "checksums match" : "values not read");
}

int check(const std::vector<std::string>& paths, const CommonOptions& common) {
  Findings all;
  for (const std::string& path : paths) {
    const Validation validation = validate_and_count(path);
    const Findings& findings = validation.findings;
    if (!common.json && findings.empty()) print(ok_text(path, validation));
    if (!common.json && !findings.empty()) print_findings(findings);
    all.append(findings);
  }
  if (common.json) {
    Json list = Json::array();
    for (const Finding& finding : all.all()) list.push_back(to_json(finding));
    print_json(
        {{"ok", all.errors() == 0}, {"findings", std::move(list)}, {"omitted", all.omitted()}});
  } else if (!all.empty()) {
    print(counted(all.errors(), "error") + ", " + counted(all.warnings(), "warning") + "\n");
  }
  return all.errors() == 0 ? 0 : 1;
}

}  // namespace

void add_check(CommandLine& line) {
  auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = add_command(
      line,
      {.name = "check",
       .summary = "Check files of a checkpoint against every rule of their formats",
       .examples = {"eckart check models/all-MiniLM-L6-v2",
                    "eckart check model-00001-of-00002.safetensors weights.npz --json"}},
      [paths, &line] { return check(*paths, line.common); });
  command
      ->add_option("paths", *paths,
                   "Files (.safetensors, .safetensors.index.json, .npy, .npz) or model folders")
      ->required()
      ->type_name("PATH...");
}

}  // namespace eckart::cli
