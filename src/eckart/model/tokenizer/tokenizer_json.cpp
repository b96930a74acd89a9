#include "eckart/core/errors.h"
#include "eckart/model/tokenizer/fields.h"
#include "eckart/model/tokenizer/parts.h"
#include "eckart/model/tokenizer/tokenizer_file.h"

#include <optional>
#include <utility>

namespace eckart::detail {
namespace {

// What the file adds must be tokens that it has.
void check_what_is_added(const TokenizerParts& parts, const Fields& root) {
  DraftEncoding draft{{}, parts.vocabulary, *parts.added, true, {}};
  for (const auto& processor : parts.post_processors) processor->apply(draft);
  for (const Index id : draft.encoding.ids) {
    if (id >= static_cast<Index>(parts.size())) {
      root.section("post_processor")
          .fail("adds the id " + std::to_string(id) + ", but the ids of the file end at " +
                std::to_string(static_cast<Index>(parts.size()) - 1));
    }
  }
}

}  // namespace

std::shared_ptr<const TokenizerParts> parse_tokenizer_json(std::string_view json,
                                                           const std::string& source) {
  TokenizerFile file = parse_tokenizer_file(json, source);
  auto parts = std::make_shared<TokenizerParts>(source);
  const Fields root(file.root, "", file.source);
  if (!root.has("model")) {
    throw_format_error(source, std::nullopt,
                       source + ": it has no model, but a tokenizer.json has one");
  }
  parts->vocabulary = std::move(file.vocabulary);
  if (root.has("normalizer")) read_normalizers(root.section("normalizer"), parts->normalizers);
  if (root.has("pre_tokenizer")) {
    read_pre_tokenizers(root.section("pre_tokenizer"), parts->pre_tokenizers);
  }
  parts->model =
      read_model(root.section("model"), file, parts->vocabulary, parts->pre_tokenizers.byte_level);
  parts->added =
      std::make_unique<AddedTokens>(read_added_tokens(root, parts->vocabulary), parts->normalizers);
  if (root.has("post_processor")) {
    read_post_processors(root.section("post_processor"), parts->post_processors);
  }
  if (root.has("decoder")) read_decoders(root.section("decoder"), parts->decoders);
  check_what_is_added(*parts, root);
  return parts;
}

}  // namespace eckart::detail
