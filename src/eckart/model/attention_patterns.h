// What the heads of a model look at: how spread out each one is, its strongest link, and how far it
// follows one of the patterns that heads are known for.
#pragma once

#include "eckart/core/tensor.h"

#include <string_view>
#include <vector>

namespace eckart {

/// One head on one text. Shares of attention are means over the tokens for which the pattern can
/// be told apart; they lie from 0 to 1, and are 0 where there is no such token.
struct HeadPattern {
  Index head = 0;
  /// Of a token's weights in bits, the mean over the tokens that see more than one: 0 where all
  /// weight is on one token.
  double entropy = 0;
  /// The largest weight, among the tokens that see more than one where there are such.
  double strongest = 0;
  Index query = 0, key = 0;
  double previous = 0;   // on the token before
  double first = 0;      // on the first token, of tokens from the third on
  double same = 0;       // on earlier copies of the token itself
  double induction = 0;  // on what followed earlier copies of the token
};

/// Reads a table of weights (head x query x key, as many queries as keys) of the tokens `ids`.
/// Cost: one pass. An induction head continues what it has seen: Olsson et al., "In-context learning
/// and induction heads", arXiv 2209.11895.
/// Throws ShapeError when the table is not that.
std::vector<HeadPattern> attention_patterns(TensorView<const float> weights,
                                            const std::vector<Index>& ids);

/// The pattern that has at least half of a head's attention: `previous token`, `first token`, `same
/// token`, `induction`; empty when none has.
std::string_view pattern_name(const HeadPattern& pattern);

}  // namespace eckart
