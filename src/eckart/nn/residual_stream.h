// The residual stream: the sum that every layer of a transformer reads from and adds to, kept with
// its terms, so that each one's part in the result can be told.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/linalg/array_like.h"

#include <optional>
#include <string>
#include <vector>

namespace eckart {

/// The norm between the stream and the unembedding.
enum class StreamNorm { none, layer_norm, rms_norm };

template <class T>
struct AttributionOptions {
  StreamNorm norm = StreamNorm::none;
  std::optional<TensorView<const T>> weight = {};  // d_model: of the norm
  std::optional<TensorView<const T>> bias = {};    // d_model: of layer_norm
  double eps = 1e-5;
  bool adds_one = false;  // rms_norm multiplies by 1 + weight
};

/// What a direction's value is made of, token by token.
struct StreamAttribution {
  Tensor<double> contributions;  // contribution x token
  double bias = 0;               // of the norm's bias, the same for every token
  /// Their sum and the bias: the normalised stream times the direction.
  Tensor<double> total;  // token
};

/// A sum of named contributions, each tokens x d_model. Contributions are kept whole: a stream takes
/// the memory of all that was added to it, and of its value.
template <class T>
class ResidualStream {
 public:
  /// A stream of one contribution. Throws ShapeError unless it is tokens x d_model.
  ResidualStream(std::string name, TensorView<const T> start);

  /// Adds a contribution, element by element in T, as the forward pass does.
  /// Throws ShapeError when its sizes or names are others; ArgumentError for a name that is taken.
  void add(std::string name, TensorView<const T> contribution);

  /// The sum so far: tokens x d_model.
  const Tensor<T>& value() const { return value_; }
  /// The contributions' names, in the order they were added.
  const std::vector<std::string>& names() const { return names_; }
  /// One of them. Throws ArgumentError, listing the names, when there is none of that name.
  const Tensor<T>& contribution(const std::string& name) const;

  /// Which part of the stream's length each contribution makes along the stream itself: <c, x> / <x,
  /// x> token by token, negative where it points the other way. The shares of a token sum to 1.
  /// Returns contributions x tokens. NaN where the stream is 0. Accuracy: products in double; the sum
  /// is 1 to what the additions in T have rounded.
  Tensor<double> shares() const;

  /// How much each contribution adds to the stream's value along a direction (d_model): with a column
  /// of the unembedding a token's logit, with the difference of two how much the one is preferred.
  /// The final norm is linear once its divisor is that of the whole stream, and is taken so (Elhage
  /// et al., "A mathematical framework for transformer circuits", 2021; nostalgebraist, "logit lens").
  /// Cost: one pass over all contributions. Accuracy: in double; contributions and bias sum to the
  /// logit to what the additions in T have rounded.
  /// Throws ShapeError when the direction or a parameter of the norm is no vector of d_model elements;
  /// ArgumentError for a parameter that the norm does not have.
  StreamAttribution attributions(TensorView<const T> direction,
                                 const AttributionOptions<T>& options = {}) const;

 private:
  Tensor<T> value_;
  std::vector<std::string> names_;
  std::vector<Tensor<T>> contributions_;
};

}  // namespace eckart
