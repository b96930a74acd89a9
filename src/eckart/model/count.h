// What a model costs: parameters, bytes and operations, counted from its table of tensors.
//
// Every number is exact in 63-bit whole numbers; one that does not fit throws ArgumentError with
// its name. The JSON that commands print has the names of these structs' members. A MAC is one
// multiplication and one addition, which is 2 FLOPs. Only products are counted: norms, activations
// and the softmax are a per mille of them.
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/dtype.h"
#include "eckart/model/architecture.h"
#include "eckart/model/quantization.h"

#include <optional>
#include <string>
#include <vector>

namespace eckart {

/// Consecutive layers that are made of the same tensors.
struct LayerRun {
  Index first = 0;
  Index n_layers = 0;
  std::vector<const TensorSpec*> tensors;  // lines of the architecture's table, in its order
};
/// The layers 0 … n_layers - 1 as runs, in order. The architecture must outlive them.
std::vector<LayerRun> layer_runs(const Architecture& arch);

struct ComponentParameters {
  Component component = Component::embedding;
  Index total = 0;
  Index active = 0;
};

/// Parameters of each of `n_layers` layers alike.
struct LayerParameters {
  Index first = 0;
  Index n_layers = 0;
  Index total = 0;
  Index active = 0;
};

struct ParameterCount {
  Index total = 0;
  Index active = 0;     // that one token's pass uses, input tables whole
  Index embedding = 0;  // the input tables: tokens, positions, types
  /// Total without the input tables and without an unembedding of its own (as the Pythia cards
  /// count).
  Index non_embedding = 0;
  Index active_non_embedding = 0;
  Index head = 0;   // what stands on top of the layers, when it has parameters of its own
  Index extra = 0;  // in the file, but no part of the total: see TensorSpec::is_extra
  std::vector<ComponentParameters> by_component;  // those that are there, in the enum's order
  std::vector<LayerParameters> per_layer;
};
ParameterCount count_parameters(const Architecture& arch);

struct WeightBytes {
  Dtype dtype = Dtype::bf16;
  bool is_stored = false;  // the bytes are those of a file, in whatever dtypes it has
  std::string storage;     // then: what they are, `as stored`
  Index bytes = 0;         // of the total, elements of less than a byte packed
  Index extra_bytes = 0;   // of the extra parameters
};

/// The dtype that weights are counted in, and what a reader should know about the choice.
struct WeightDtype {
  Dtype dtype = Dtype::bf16;
  std::vector<std::string> notes;
};
/// `asked`, else the config's, else BF16.
WeightDtype choose_weights_dtype(const Architecture& arch, std::optional<Dtype> asked);

/// Whether a line is a matrix of the layers' attention, MLP or experts, without the router: what a
/// dtype of less than 16 bits, a quantization and a LoRA apply to.
bool is_layer_matrix(const TensorSpec& spec);
/// The dtype that a gradient, an adapter or an activation has beside weights of `dtype`: the same,
/// but BF16 where that is narrower than 16 bits or no float.
Dtype trained_dtype(Dtype dtype);
/// That of the config's dtype: what activations are computed in.
Dtype activation_dtype(const Architecture& arch);
/// Bytes of the weights in a dtype. One of less than 16 bits is for the matrices of the layers:
/// embeddings, head, norms, biases and routers stay in 16 bits, as in files. Throws ArgumentError
/// when they are beyond 63 bits, as does `quantized_weight_bytes`.
Index weight_bytes(const Architecture& arch, Dtype dtype);
/// What embeddings, head, norms and the like are in beside matrices of less than 16 bits: the
/// config's dtype where that has 16 bits, else BF16.
Dtype dtype_beside_narrow(const Architecture& arch);
/// An estimate of what the weights take as the config's quantization stores them: values, scales and
/// zero points of the layers' matrices (MXFP4: of the experts), the rest in the config's dtype. Nothing for a
/// method that is not known.
std::optional<Index> quantized_weight_bytes(const Architecture& arch,
                                            const Quantization& quantization);

/// `context` tokens in each of `batch` sequences.
struct KvCacheCostOptions {
  Index context = 0;  // at least 1
  Index batch = 1;
  Dtype dtype = Dtype::bf16;
};

/// The cache of the layers with one window.
struct KvCacheGroup {
  Index n_layers = 0;
  Index window = 0;           // 0: none
  Index bytes_per_token = 0;  // all of these layers
  Index tokens = 0;           // kept at the context: at most the window
  Index bytes_at_context = 0;
};

/// Multi-head latent attention with its keys and values unpacked, as engines without support for
/// the latent keep them.
struct ExpandedCache {
  Index bytes_per_token = 0;
  Index bytes_at_context = 0;
};

/// Keys and values that generation keeps; all 0 for an encoder.
struct KvCacheCost {
  Dtype dtype = Dtype::bf16;
  Index bytes_per_token = 0;   // while no window is full: all layers
  Index bytes_at_context = 0;  // needed: windows limit each layer
  /// What an allocator takes that ignores windows.
  Index bytes_at_context_without_windows = 0;
  std::optional<ExpandedCache> expanded;
  std::vector<KvCacheGroup> groups;
};
KvCacheCost count_kv_cache(const Architecture& arch, const KvCacheCostOptions& options);

/// The token x token table of attention's weights.
struct ScoreTable {
  Index entries_per_head = 0;
  Index bytes_per_head = 0;
  Index entries_per_layer = 0;  // all heads, all sequences
  Index bytes_per_layer = 0;
};

/// Bytes of each of `n_layers` layers alike.
struct LayerActivations {
  Index first = 0;
  Index n_layers = 0;
  Index training_bytes = 0;
  Index training_bytes_fused = 0;
  Index inference_bytes = 0;
};

/// What the passes keep in memory beside the weights. Training, without recomputation: what each
/// operation's backward pass needs, each tensor once; statistics of norms are left out. `fused`
/// means an attention that never forms the score table. Inference: the largest set of tensors that
/// live at once in one layer, element-wise operations in place, attention fused.
struct Activations {
  Dtype dtype = Dtype::bf16;
  std::vector<LayerActivations> per_layer;
  Index training_outside_layers_bytes = 0;  // input dropout, last norm, head; logits in F32
  Index training_bytes = 0;
  Index training_bytes_fused = 0;
  Index inference_bytes = 0;
  Index inference_bytes_with_scores = 0;  // one layer's score table beside it
  ScoreTable score_table;
};

struct ActivationOptions {
  Index context = 0;  // at least 1
  Index batch = 1;
  Dtype dtype = Dtype::bf16;
};
Activations count_activations(const Architecture& arch, const ActivationOptions& options);
/// Elements a token that live at once in the layer with most of them, see Activations.
Index live_elements_per_token(const Architecture& arch);

/// Multiply-accumulates of a forward pass. The unembedding counts at every token, tied or not; a
/// look-up is no product; of experts, the active ones count. Latent attention is counted unpacked.
struct MacCount {
  Index linear_per_token = 0;   // matrices that every token passes
  Index head_per_sequence = 0;  // a pooler, a classifier: once a sequence
  /// Scores and mixing, all sequences: `full_square` every pair of tokens, as most tools count and
  /// as an unfused implementation computes, windows or not; `causal` only what a token may look at:
  /// itself and what is before it, within the window. An encoder looks both ways: both are equal.
  Index attention_full_square = 0;
  Index attention_causal = 0;
  Index forward_full_square = 0;
  Index forward_causal = 0;
};
MacCount count_macs(const Architecture& arch, Index context, Index batch);

struct FlopCount {
  Index linear_per_token = 0;
  Index forward = 0;  // the usual convention: that of the full square
  Index forward_full_square = 0;
  Index forward_causal = 0;
  Index per_token_at_context = 0;  // generating the token that completes the context
};

/// Training all parameters.
struct TrainingCount {
  Index tokens = 0;        // context x batch
  Index flops = 0;         // 3 forward passes, full square: the backward pass is two
  Index flops_causal = 0;  // 3 causal forward passes
  /// 6 N D, N the active parameters, all or non-embedding ones, D the tokens.
  Index flops_6nd_total = 0;
  Index flops_6nd_non_embedding = 0;
  Index weights_bytes = 0;
  Index gradient_bytes = 0;  // in the weights' dtype, at least BF16
  /// AdamW: two F32 moments, and an F32 copy of weights that are shorter: 12 or 8 bytes a
  /// parameter.
  Index optimizer_bytes = 0;
  Index activation_bytes = 0;        // with the score tables
  Index activation_bytes_fused = 0;  // of an attention that never forms them
  Index total_bytes = 0;             // with `activation_bytes`
};

/// One line of the table that gets an adapter: B A beside W, A of rank x d_in, B of d_out x rank.
struct LoraTarget {
  std::string name;  // as in the table, without `.weight`
  Role role = Role::w_q;
  Index d_in = 0;
  Index d_out = 0;
  Index n_matrices = 0;  // layers x experts
  Index parameters = 0;  // rank (d_in + d_out) each
};

struct LoraCount {
  Index rank = 0;
  Index parameters = 0;
  double share = 0;  // of the model's total
  Index weights_bytes = 0;
  Index gradient_bytes = 0;
  Index optimizer_bytes = 0;
  std::vector<LoraTarget> targets;
};

struct LoraOptions {
  Index rank = 0;  // at least 1
  /// Roles (`w_q`) or ends of names (`q_proj`, `mlp.gate`). None: every matrix of the layers'
  /// attention, MLP and experts, without the router.
  std::vector<std::string> targets = {};
  Dtype dtype = Dtype::bf16;
};
/// Throws ArgumentError when the rank is above the smaller side of a target, naming it, or when a
/// name of `targets` fits nothing.
LoraCount count_lora(const Architecture& arch, const LoraOptions& options);

struct CountOptions {
  Index context = 0;  // tokens of a sequence; 0: as many as the model was made for
  Index batch = 1;
  std::optional<Dtype> weights_dtype = {};  // nothing: the config's, else BF16
  /// What the weights take in their file, where that has several dtypes or is quantized.
  std::optional<Index> stored_weights_bytes = {};
  std::string weights_storage = "as stored";  // what these bytes are
  Dtype kv_dtype = Dtype::bf16;
  std::optional<Dtype> activation_dtype = {};  // nothing: see the function of that name
  bool train = false;
  Index lora_rank = 0;  // 0: no adapter
  std::vector<std::string> lora_targets = {};
};

struct Count {
  Index context = 0;
  Index batch = 1;
  ParameterCount parameters;
  WeightBytes weights;
  KvCacheCost kv_cache;
  Activations activations;
  MacCount macs;
  FlopCount flops;
  std::optional<TrainingCount> training;
  std::optional<LoraCount> lora;
  std::vector<std::string> notes;  // the architecture's assumptions and the count's own
};

/// Counts a model. Throws ArgumentError when an option is out of range, a LoRA does not fit or a
/// number is beyond 63 bits.
Count count(const Architecture& arch, const CountOptions& options = {});

/// Bytes of `elements`, packed, rounded up. Throws ArgumentError, naming `quantity`.
Index packed_bytes(Index elements, Dtype dtype, const std::string& quantity);

}  // namespace eckart
