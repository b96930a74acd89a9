// What the commands that run a model are given: the model, its tokenizer, and a text or its ids.
#pragma once

#include "eckart/model/language_model.h"
#include "eckart/model/tokenizer.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "commands.h"

namespace eckart::cli {

struct TextOptions {
  std::string path;
  std::string text;
  std::string ids;
  bool truncate = false;
};

/// Adds the model, `--text` (or what `text` calls it), `--ids` and `--truncate`.
void add_text_options(CLI::App& command, const std::string& text, TextOptions& options);

/// What is kept of a text that is too long.
struct Keep {
  /// Its end and not its beginning; the special tokens in front of the text stay.
  bool end = false;
  /// Tokens of the context that are left for what follows, but no more than half of it.
  Index room = 0;
};

struct TextInput {
  LanguageModel model;
  std::optional<Tokenizer> tokenizer = {};  // nothing: the folder has none, and the ids were given
  std::vector<Index> ids = {};
  std::string name = {};  // of the model's folder

  /// A token as the vocabulary spells it, or its id where there is no tokenizer; printable.
  std::string label(Index id) const;
};

/// Opens the model of `path`; what it holds beyond its config is said on standard error.
LanguageModel open_model_to_run(const std::string& path, const CommonOptions& common);

/// Opens the model and reads the text. Throws UsageError when neither text nor ids are given, or ids
/// are no list of numbers; ArgumentError when the text is no UTF-8, has no tokens, or more than the
/// model's context and is not to be truncated (otherwise that is said on standard error).
TextInput open_text(const TextOptions& options, std::string_view operation, const Keep& keep,
                    const CommonOptions& common);

/// A line on standard error that is no error, unless `--quiet`.
void remark(const std::string& text, const CommonOptions& common);

}  // namespace eckart::cli
