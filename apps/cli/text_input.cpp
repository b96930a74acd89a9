#include "text_input.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/embed_texts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "console.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

namespace fs = std::filesystem;

// `1,2,3` or `1 2 3`.
std::vector<Index> parse_ids(const std::string& text) {
  std::vector<Index> ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(", ", begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    Index id = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), id);
    if (error != std::errc{} || stop != part.data() + part.size()) {
      throw_usage_error("--ids is '" + printable(text, 60) +
                        "', but must be whole numbers with commas between them");
    }
    ids.push_back(id);
  }
  return ids;
}

bool has_tokenizer(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "tokenizer.json", ignored) ||
         fs::is_regular_file(folder / "vocab.txt", ignored);
}

std::string name_of(const fs::path& folder) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(folder, error);
  const std::string name = (error ? folder : whole).filename().string();
  return name.empty() ? folder.string() : name;
}

// How many ids in front of the text's own are special tokens.
Index special_before(const TextInput& input, const std::string& text) {
  const std::vector<Index> plain = input.tokenizer->encode(text, {.special_tokens = false}).ids;
  const auto added = static_cast<Index>(input.ids.size()) - static_cast<Index>(plain.size());
  Index before = 0;
  while (before < added && !std::equal(plain.begin(), plain.end(), input.ids.begin() + before)) {
    ++before;
  }
  return before;
}

void fit_context(const TextOptions& options, std::string_view operation, const Keep& keep,
                 const CommonOptions& common, TextInput& input) {
  const Index context = input.model.context();
  const auto n = static_cast<Index>(input.ids.size());
  if (n <= context) return;
  const Index limit = context - std::min(keep.room, context / 2);
  const std::string what = fmt::format("{}: the text has {} tokens, but the model's context is {}",
                                       operation, n, context);
  const std::string how =
      fmt::format("the {} {} are taken", keep.end ? "last" : "first", limit) +
      (limit < context ? fmt::format(", which leaves room for {}", context - limit) : "");
  if (!options.truncate) throw_argument_error(what, "with --truncate " + how);
  if (keep.end) {
    const Index before =
        options.ids.empty() ? std::min(special_before(input, options.text), limit - 1) : 0;
    input.ids.erase(input.ids.begin() + before, input.ids.end() - (limit - before));
  } else if (options.ids.empty()) {
    input.ids = truncated(*input.tokenizer, options.text, limit).ids;
  } else {
    input.ids.resize(static_cast<std::size_t>(limit));
  }
  remark(what + ": " + how, common);
}

}  // namespace

void add_text_options(CLI::App& command, const std::string& text, TextOptions& options) {
  command.add_option("model", options.path, "A model folder, with its tokenizer")
      ->required()
      ->type_name("MODEL");
  add_text(command, {.name = text, .effect = "The text to run on", .value = "TEXT"},
           [&options](const std::string& value) { options.text = value; });
  add_text(command,
           {.name = "--ids", .effect = "Token ids in place of a text: 1,15,8", .value = "IDS"},
           [&options](const std::string& value) { options.ids = value; })
      ->excludes(command.get_option(text));
  command.add_flag("--truncate", options.truncate,
                   "Cut a text that is longer than the model's context, instead of an error");
}

std::string TextInput::label(Index id) const {
  if (!tokenizer || id >= tokenizer->size()) return fmt::format("#{}", id);
  const std::string& token = tokenizer->token(id);
  return token.empty() ? fmt::format("#{}", id) : printable(token, 40);
}

void remark(const std::string& text, const CommonOptions& common) {
  if (common.quiet) return;
  std::fflush(stdout);
  std::fputs(("eckart: " + printable_path(text) + "\n").c_str(), stderr);
}

LanguageModel open_model_to_run(const std::string& path, const CommonOptions& common) {
  std::error_code ignored;
  fs::path folder = path;
  if (folder.filename() == "config.json" && fs::is_regular_file(folder, ignored)) {
    folder = folder.parent_path().empty() ? fs::path(".") : folder.parent_path();
  }
  LanguageModel model = open_language_model(folder);
  for (const std::string& warning : model.warnings()) remark("warning: " + warning, common);
  return model;
}

TextInput open_text(const TextOptions& options, std::string_view operation, const Keep& keep,
                    const CommonOptions& common) {
  if (options.text.empty() && options.ids.empty()) {
    throw_usage_error(fmt::format("{}: there is no text", operation),
                      fmt::format("give {} \"…\", or --ids 1,2,3",
                                  operation == "generate" ? "--prompt" : "--text"));
  }
  TextInput input{.model = open_model_to_run(options.path, common)};
  const fs::path& folder = input.model.checkpoint().folder();
  input.name = name_of(folder);
  if (options.ids.empty() || has_tokenizer(folder)) input.tokenizer = load_tokenizer(folder);
  if (options.ids.empty()) {
    input.ids = input.tokenizer->encode(options.text).ids;
  } else {
    input.ids = parse_ids(options.ids);
  }
  if (input.ids.empty()) {
    throw_argument_error(
        fmt::format("{}: the text has no tokens, but must have at least one", operation));
  }
  fit_context(options, operation, keep, common, input);
  return input;
}

}  // namespace eckart::cli
