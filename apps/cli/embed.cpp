// eckart embed: texts to vectors, as the folder's sentence-transformers files say.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/model/embed_texts.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "array_output.h"
#include "commands.h"
#include "console.h"
#include "json_output.h"
#include "text_input.h"
#include "usage.h"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace eckart::cli {
namespace {

struct EmbedCommand {
  std::string path;
  std::vector<std::string> texts;
  std::string file;
  std::string output;
  std::optional<Pooling> pooling;
  bool normalize = false;
  bool truncate = false;
};

// One text a line; an empty line is an empty text.
std::vector<std::string> lines_of(const std::string& path) {
  const MappedFile file = open_mapped(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    std::string_view text = bytes.substr(begin, end - begin);
    if (text.ends_with('\r')) text.remove_suffix(1);
    lines.emplace_back(text);
    begin = end + 1;
  }
  return lines;
}

SentenceSettings settings_of(const LanguageModel& model, const EmbedCommand& command) {
  SentenceSettings settings = read_sentence_settings(model.checkpoint().folder());
  if (command.pooling) settings.poolings = {*command.pooling};
  if (command.normalize && !settings.normalizes()) settings.steps.emplace_back();
  return settings;
}

std::string method_of(const SentenceSettings& settings) {
  std::string text;
  for (const Pooling pooling : settings.poolings) {
    text += (text.empty() ? "" : " and ") + std::string(to_string(pooling));
  }
  text += " of the tokens' states";
  for (const SentenceStep& step : settings.steps) {
    if (step.w) text += fmt::format(", dense to {}", step.w->size(1));
  }
  return text + (settings.normalizes() ? ", length 1" : ", not normalised");
}

void say_what_was_cut(const Embeddings& found, const CommonOptions& common) {
  if (found.truncated.empty()) return;
  remark(fmt::format("embed: {} cut to what the model takes, the first of them text {}",
                     found.truncated.size() == 1
                         ? std::string("1 text was")
                         : fmt::format("{} texts were", found.truncated.size()),
                     found.truncated.front() + 1),
         common);
}

Embeddings embeddings_of(const LanguageModel& model, const EmbedCommand& command,
                         const SentenceSettings& settings, const CommonOptions& common) {
  std::vector<std::string> texts = command.texts;
  if (!command.file.empty()) texts = lines_of(command.file);
  if (texts.empty()) {
    throw_argument_error("embed: " + printable_path(command.file) +
                         " has no lines, but each is a "
                         "text to embed");
  }
  Progress progress("embed", texts.size(), common.quiet || common.json);
  EmbedOptions options{.truncate = command.truncate};
  options.on_progress = [&](Index done, Index) {
    progress.advance(static_cast<std::uint64_t>(done));
  };
  return embed_texts(model, load_tokenizer(model.checkpoint().folder()), settings, texts, options);
}

int run_embed(const EmbedCommand& command, const CommonOptions& common) {
  if (command.texts.empty() && command.file.empty()) {
    throw_usage_error("embed: there is no text",
                      "give --text \"…\", or --file FILE with a text a "
                      "line");
  }
  ArrayFile output(command.output, "embed");
  const LanguageModel model = open_model_to_run(command.path, common);
  const SentenceSettings settings = settings_of(model, command);
  const Embeddings found = embeddings_of(model, command, settings, common);
  say_what_was_cut(found, common);
  if (!command.output.empty()) save_array(output, found.vectors);
  if (common.json) {
    Json poolings = Json::array();
    for (const Pooling pooling : settings.poolings) poolings.push_back(to_string(pooling));
    Json json = {{"shape", sizes_json(found.vectors.shape())},
                 {"pooling", std::move(poolings)},
                 {"normalized", settings.normalizes()},
                 {"n_tokens", found.n_tokens},
                 {"truncated", found.truncated}};
    if (command.output.empty()) json["embeddings"] = array_json(found.vectors.view());
    print_json(json);
    return 0;
  }
  const std::string head =
      command.output.empty() ? std::string() : printable_path(command.output) + ": ";
  if (command.output.empty()) print(array_text("embeddings", found.vectors.view()));
  print(fmt::format("{}{} {}, {}{}\n", head, shape_text(found.vectors.shape()), "embeddings",
                    method_of(settings),
                    settings.is_from_folder || command.pooling ? "" : " (no modules.json)"));
  return 0;
}

const std::map<std::string, Pooling> pooling_names = {
    {"mean", Pooling::mean}, {"cls", Pooling::cls}, {"max", Pooling::max}, {"last", Pooling::last}};

}  // namespace

void add_embed(CommandLine& line) {
  auto options = std::make_shared<EmbedCommand>();
  CLI::App* const command = add_command(
      line,
      {.name = "embed",
       .summary = "Vectors of texts, pooled and normalised as the model's files say",
       .examples = {"eckart embed models/all-MiniLM-L6-v2 --text \"A cat sat.\" -o cat.npy",
                    "eckart embed models/all-MiniLM-L6-v2 --file sentences.txt -o sentences.npy"}},
      [options, &line] { return run_embed(*options, line.common); });
  command->add_option("model", options->path, "A model folder, with its tokenizer")
      ->required()
      ->type_name("MODEL");
  CLI::Option* const text =
      command->add_option("--text", options->texts, "A text; may be given several times")
          ->type_name("TEXT")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--file", options->file, "A file with a text in each line")
      ->type_name("FILE")
      ->excludes(text);
  command->add_option("-o,--output", options->output, std::string(output_help))->type_name("FILE");
  add_choice(*command,
             {.name = "--pooling",
              .effect = "How a text's states become one vector, whatever the folder says",
              .value = "mean|cls|max|last"},
             [options](const std::string& word) { options->pooling = pooling_names.at(word); });
  command->add_flag("--normalize", options->normalize,
                    "Bring each vector to length 1, also where the folder does not");
  command->add_flag("--truncate", options->truncate,
                    "Cut texts that are longer than the model takes, instead of an error");
}

}  // namespace eckart::cli
