// What a forward pass needs of a config beside the tensors: constants, positions, and the order in
// which a layer's parts stand.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/nn/activations.h"
#include "eckart/nn/rotary.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// Where the norms of a layer stand.
enum class NormPlacement {
  before,  // x + f(norm(x))
  after,   // norm(x + f(x)): BERT
  both,    // x + norm(f(norm(x))): Gemma 2
};

/// How a fused matrix holds queries, keys and values.
enum class QkvOrder {
  by_kind,  // all heads' queries, then keys, then values
  by_head,  // one head's query, key and value, then the next head's: GPT-NeoX
};

struct ForwardSettings {
  NormPlacement norm_placement = NormPlacement::before;
  bool is_rms_norm = false;  // else LayerNorm
  double norm_eps = 1e-5;
  bool norm_adds_one = false;
  Activation activation = Activation::gelu;
  Activation head_activation = Activation::gelu;  // of the dense transform before an unembedding
  QkvOrder qkv_order = QkvOrder::by_kind;
  bool is_causal = true;
  bool is_parallel = false;
  /// Factor of each layer's scores.
  std::vector<double> scales;
  double attention_softcap = 0;
  double logit_softcap = 0;
  double embedding_scale = 1;
  /// Rotary positions, or nothing where positions are learned.
  std::optional<RotaryOptions> rotary;
  /// Row of the position table that the first token takes, and the token that has no position but
  /// stays at its own id (RoBERTa's padding).
  Index position_offset = 0;
  std::optional<Index> padding_id;
  /// The longest sequence in tokens.
  Index context = 0;
  /// Tokens that end a text that is generated.
  std::vector<Index> end_ids;
};

/// The families whose forward pass is known, by name.
const std::vector<std::string_view>& forward_families();

/// Reads the settings of a model. Every one is a field of the config, or the default that the
/// family's configs leave out. Throws ArgumentError, naming what is supported, for a family, an
/// activation or a scaling of positions without a forward pass; FormatError where a field has no
/// meaning.
ForwardSettings read_forward_settings(const Config& config, const Architecture& architecture);

}  // namespace eckart
