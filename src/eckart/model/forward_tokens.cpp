// What a batch must be, and where its tokens stand.
#include "eckart/core/errors.h"
#include "eckart/model/forward_pass.h"

#include <algorithm>

namespace eckart::detail {
namespace {

std::string sequence_name(std::size_t number, std::size_t count) {
  return count == 1 ? "the sequence" : "sequence " + std::to_string(number) + " of the batch";
}

void check_lengths(const TokenSequence& sequence, const std::string& who, Index longest) {
  const std::size_t n = sequence.ids.size();
  if (n == 0) {
    throw_argument_error("forward: " + who + " has no tokens, but must have at least one");
  }
  if (static_cast<Index>(n) > longest) {
    throw_argument_error("forward: " + who + " has " + std::to_string(n) +
                             " tokens, but the model's context leaves room for " +
                             std::to_string(longest),
                         "give at most " + std::to_string(longest) + " tokens");
  }
  if (!sequence.types.empty() && sequence.types.size() != n) {
    throw_argument_error("forward: " + who + " has " + std::to_string(n) + " tokens and " +
                         std::to_string(sequence.types.size()) +
                         " token types, but each token takes one");
  }
  if (!sequence.mask.empty() && sequence.mask.size() != n) {
    throw_argument_error("forward: " + who + " has " + std::to_string(n) +
                         " tokens and a mask of " + std::to_string(sequence.mask.size()) +
                         ", but each token takes one entry");
  }
}

void check_range(const std::vector<Index>& values, Index limit, const std::string& who,
                 std::string_view what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < limit) continue;
    throw_argument_error("forward: token " + std::to_string(i) + " of " + who + " has the " +
                         std::string(what) + " " + std::to_string(values[i]) +
                         ", but the model has those from 0 to " + std::to_string(limit - 1));
  }
}

// Positions count from the sequence's start; RoBERTa's count its tokens and leave padding where its
// own id is.
void number_tokens(const ForwardSettings& settings, const TokenSequence& sequence, Index past,
                   std::vector<Index>& positions) {
  Index next = past + settings.position_offset;
  for (const Index id : sequence.ids) {
    const bool is_padding = settings.padding_id && id == *settings.padding_id;
    positions.push_back(is_padding ? id : next++);
  }
}

}  // namespace

PassTokens pass_tokens(const ForwardModel& model, const std::vector<TokenSequence>& batch,
                       Index past) {
  if (batch.empty()) throw_argument_error("forward: the batch is empty");
  PassTokens tokens;
  tokens.begin.push_back(0);
  const std::optional<StoredMatrix>& types = model.weights.type_embedding;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const TokenSequence& sequence = batch[i];
    const std::string who = sequence_name(i, batch.size());
    check_lengths(sequence, who, model.settings.context - past);
    check_range(sequence.ids, model.architecture.n_vocab, who, "id");
    check_range(sequence.types, types ? types->n_outputs() : 1, who, "type");
    tokens.ids.insert(tokens.ids.end(), sequence.ids.begin(), sequence.ids.end());
    tokens.types.insert(tokens.types.end(), sequence.types.begin(), sequence.types.end());
    tokens.types.resize(tokens.ids.size(), 0);
    number_tokens(model.settings, sequence, past, tokens.positions);
    tokens.begin.push_back(tokens.count());
    Tensor<bool> mask({1, 1, static_cast<Index>(sequence.mask.size())});
    for (std::size_t t = 0; t < sequence.mask.size(); ++t) mask.data()[t] = sequence.mask[t];
    tokens.masks.push_back(std::move(mask));
  }
  return tokens;
}

}  // namespace eckart::detail
