// The tensors of a checkpoint by what they do: each line of the family's table becomes the matrix,
// bias or norm that a forward pass asks for.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/checkpoint.h"
#include "eckart/model/architecture.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/stored_matrix.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace eckart {

/// A matrix as it is stored, and its bias widened.
struct LinearWeights {
  StoredMatrix matrix;
  std::optional<Tensor<float>> bias;
};

/// x w + b. x: token x d_in; returns token x d_out. Cost, accuracy, errors: as `linear` of the matrix.
Tensor<float> linear(TensorView<const float> x, const LinearWeights& weights);

struct NormWeights {
  Tensor<float> weight;
  std::optional<Tensor<float>> bias;  // LayerNorm has one
};

struct LayerWeights {
  /// Those of d_model in the order in which a layer applies them.
  std::vector<NormWeights> norms;
  std::optional<NormWeights> q_norm, k_norm;  // of each head
  std::optional<LinearWeights> q, k, v, qkv, o;
  std::optional<LinearWeights> gate, up, gate_up, down;
};

struct ModelWeights {
  std::optional<StoredMatrix> token_embedding, position_embedding, type_embedding;
  std::optional<NormWeights> embedding_norm;
  std::vector<LayerWeights> layers;
  std::optional<NormWeights> final_norm;
  /// The head of a language model: an encoder's has a dense transform and a norm first.
  std::optional<LinearWeights> head_dense;
  std::optional<NormWeights> head_norm;
  std::optional<LinearWeights> unembedding;
  /// The tensor whose absence leaves the model without a head, where the config implies one.
  std::string missing_head;
  /// What the file holds and the config does not account for: a sentence each.
  std::vector<std::string> warnings;
};

/// Finds every tensor. Matrices stay where they lie; biases and norms are widened.
/// Throws FormatError, naming the tensor and what config.json implies, when one is missing or has
/// another shape; ArgumentError when one is stored in a way that is not read as numbers. The head of
/// an encoder may be missing: it is not needed for its states.
ModelWeights find_weights(const std::shared_ptr<const Checkpoint>& checkpoint,
                          const std::vector<LogicalTensor>& tensors,
                          const Architecture& architecture);

}  // namespace eckart
