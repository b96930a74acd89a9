// Rotary positions: pairs of a head's elements turned by an angle that grows with the position, so
// that the score of a query and a key depends on their distance alone.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <vector>

namespace eckart {

/// Which elements of a head are turned together, of the d_rotary first ones.
enum class RotaryPairing {
  halves,      // i with i + d_rotary / 2, as Hugging Face stores Llama
  neighbours,  // 2i with 2i + 1, as in the paper, GPT-J and Meta's files
};

/// How the frequencies are changed for contexts longer than those trained on.
enum class RotaryScaling { none, linear, ntk, dynamic_ntk, yarn, llama3, longrope };

struct RotaryOptions {
  double base = 10000;  // theta: pair i turns by base^(-2i / d_rotary) radians a position
  Index d_rotary = 0;   // elements of a head that are turned, the first ones; 0: all. Even.
  RotaryPairing pairing = RotaryPairing::halves;
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;                // how much longer the context becomes; not of longrope's angles
  Index original_context = 0;       // tokens trained on: yarn, llama3, dynamic_ntk, longrope
  double low_frequency_factor = 1;  // llama3: waves longer than original_context / this are slowed
  double high_frequency_factor = 4;  // llama3: waves shorter than original_context / this are kept
  double beta_fast = 32;        // yarn: pairs that turn more often in the original context are kept
  double beta_slow = 1;         // yarn: pairs that turn less often are slowed
  bool truncates = true;        // yarn: the borders between them are whole pairs
  double attention_factor = 0;  // yarn, longrope; 0: the method's own
  double mscale = 0, mscale_all_dim = 0;   // yarn: both above 0: DeepSeek's attention factor
  std::vector<double> short_factors = {};  // longrope: one a pair, up to original_context
  std::vector<double> long_factors = {};   // longrope: one a pair, beyond
  Index context = 0;  // tokens of the sequence, of dynamic_ntk and longrope; 0: original_context
};

struct RotaryFrequencies {
  std::vector<double> angles_per_token;  // radians a position, one a pair
  double factor = 1;                     // of cosine and sine: the attention factor
};

/// How far each pair of a head of d_head elements turns a position. Cost: one power a pair.
/// Accuracy: a few 2^-53. References: Su et al., "RoFormer", arXiv 2104.09864; Peng et al., "YaRN",
/// arXiv 2309.00071 (also ntk and dynamic_ntk); Ding et al., "LongRoPE", arXiv 2402.13753; Llama 3.1.
/// Throws ArgumentError, naming the option, when d_rotary is odd or beyond d_head, the base or the
/// factor is out of range, or the scaling lacks what it needs.
RotaryFrequencies rotary_frequencies(Index d_head, const RotaryOptions& options);

/// Cosines and sines of all pairs at some positions: made once, used for each layer's queries and
/// keys.
template <class T>
struct RotaryTable {
  Tensor<T> cosines;  // token x pair, times the attention factor
  Tensor<T> sines;    // the same
  RotaryPairing pairing = RotaryPairing::halves;
};

/// The table for heads of d_head elements at `positions`, one entry a token. Cost: a sine and a
/// cosine for each entry, in double. Accuracy: rounded to T; angles are off by 2^-52 of themselves.
/// Throws as `rotary_frequencies`.
template <class T>
RotaryTable<T> rotary_table(Index d_head, const std::vector<Index>& positions,
                            const RotaryOptions& options = {});

/// The pairs (x_i, x_j) of each head at each token turned: (x_i cos - x_j sin, x_i sin + x_j cos).
/// x is … x token x d_head. Elements behind those turned stay as they are.
/// Returns the shape of x, names included. Cost: one pass. Accuracy: 2 eps of the pair's length.
/// Throws ShapeError when x has less than two axes, the table has not one row a token, or its pairs
/// need more than d_head elements.
template <class T>
Tensor<T> rotary(TensorView<const T> x, const RotaryTable<T>& table);
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> rotary(
    const A& x, const RotaryTable<detail::Element<A>>& table) {
  return rotary<detail::Element<A>>(detail::read_only(x), table);
}

/// The same with a table for these positions, one entry a token.
/// Throws also ShapeError when their number is not that of x's tokens.
template <class T>
Tensor<T> rotary(TensorView<const T> x, const std::vector<Index>& positions,
                 const RotaryOptions& options = {});
template <class A>
requires detail::Arrays<A> Tensor<detail::Element<A>> rotary(const A& x,
                                                             const std::vector<Index>& positions,
                                                             const RotaryOptions& options = {}) {
  return rotary<detail::Element<A>>(detail::read_only(x), positions, options);
}

}  // namespace eckart
