// vocab.txt: one token a line, its id the number of the line; the rest is BERT's.
#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/utf8.h"
#include "eckart/model/config.h"
#include "eckart/model/tokenizer/fields.h"
#include "eckart/model/tokenizer/parts.h"

#include <array>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart::detail {
namespace {

[[noreturn]] void throw_line_error(const std::string& source, std::size_t line,
                                   const std::string& rule) {
  throw_format_error(source, std::nullopt,
                     source + ": line " + std::to_string(line + 1) + ": " + rule);
}

void read_lines(std::string_view text, const std::string& source, Vocabulary& vocabulary) {
  if (const auto bad = find_invalid_utf8(text)) {
    throw_format_error(
        source, *bad,
        source + ": byte " + std::to_string(*bad) + " is no UTF-8, but a vocabulary is text");
  }
  for (std::size_t line = 0; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view token = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (token.ends_with('\r')) token.remove_suffix(1);
    if (line >= Vocabulary::id_limit) {
      throw_line_error(source, line, "it has more than 2^22 lines, but no vocabulary has");
    }
    if (vocabulary.add(token, static_cast<std::uint32_t>(line)) != Vocabulary::Added::yes) {
      throw_line_error(
          source, line,
          '"' + printable(token, 60) + "\" stands there twice, but each token has one id");
    }
  }
  if (vocabulary.count() == 0) {
    throw_format_error(source, 0,
                       source + ": the file is empty, but a vocabulary has a token a line");
  }
}

// The names of the special tokens, by what the config calls them.
using SpecialNames = std::map<std::string, std::string, std::less<>>;

void read_special_name(const Fields& config, const std::string& role, SpecialNames& names) {
  if (!config.has(role)) return;
  try {
    names[role] = config.text(role);
  } catch (const FormatError&) {
    names[role] = config.section(role).text("content");
  }
}

AddedToken special_token(std::string content, std::uint32_t id) {
  AddedToken token;
  token.content = std::move(content);
  token.id = id;
  token.special = true;
  return token;
}

nlohmann::json parse_config_tree(std::string_view text, const std::string& source) {
  if (text.empty()) return nlohmann::json::object();
  static_cast<void>(parse_config(text, source));  // says what is wrong with it
  nlohmann::json tree = nlohmann::json::parse(text, nullptr, false);
  if (!tree.is_object()) {
    throw_format_error(source, std::nullopt,
                       source + ": it has a number beyond what a double holds");
  }
  return tree;
}

}  // namespace

std::shared_ptr<const TokenizerParts> parse_vocab_txt(std::string_view text,
                                                      std::string_view config,
                                                      const std::string& source) {
  auto parts = std::make_shared<TokenizerParts>(source);
  read_lines(text, source, parts->vocabulary);
  const std::string config_source = "tokenizer_config.json beside " + source;
  const nlohmann::json tree = parse_config_tree(config, config_source);
  const Fields fields(tree, "", config_source);
  BertRules rules;
  rules.lowercase = fields.boolean_or("do_lower_case", true);
  rules.strip_accents = fields.boolean_or("strip_accents", rules.lowercase);
  rules.handle_chinese_chars = fields.boolean_or("tokenize_chinese_chars", true);
  SpecialNames names = {{"pad_token", "[PAD]"},
                        {"unk_token", "[UNK]"},
                        {"cls_token", "[CLS]"},
                        {"sep_token", "[SEP]"},
                        {"mask_token", "[MASK]"}};
  std::vector<std::string> roles;
  for (const auto& [role, name] : names) roles.push_back(role);
  for (const std::string& role : roles) read_special_name(fields, role, names);

  parts->normalizers.push_back(bert_normalizer(rules));
  parts->pre_tokenizers.all.push_back(bert_pre_tokenizer());
  WordPieceRules word_piece_rules;
  word_piece_rules.unk_token = names["unk_token"];
  parts->model = word_piece(parts->vocabulary, std::move(word_piece_rules));
  std::vector<AddedToken> special;
  for (const auto& [role, name] : names) {
    const auto id = parts->vocabulary.find(name);
    if (id && !name.empty()) special.push_back(special_token(name, *id));
  }
  parts->added = std::make_unique<AddedTokens>(std::move(special), parts->normalizers);
  const auto cls = parts->vocabulary.find(names["cls_token"]);
  const auto sep = parts->vocabulary.find(names["sep_token"]);
  if (!cls || !sep) {
    throw_format_error(source, std::nullopt,
                       source + ": it has no " +
                           printable(names[cls ? "sep_token" : "cls_token"], 60) +
                           ", but BERT's tokenizer puts it around a text");
  }
  parts->post_processors.push_back(bert_processor(*cls, *sep));
  parts->decoders.push_back(word_piece_decoder("##", true));
  return parts;
}

}  // namespace eckart::detail
