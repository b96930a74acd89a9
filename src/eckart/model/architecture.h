// What a config.json says a model is: its sizes and a table of its tensors with named axes.
//
// The table is the one description of a family. Parameter counts, FLOPs, the cross-check against a
// checkpoint and the shape flow are all derived from it.
//
// Names of axes, each of one size in one model:
//   vocab, position, type  rows of the input tables
//   d_model                the residual stream
//   heads, kv_heads        all query heads side by side (n_heads x d_head), all key or value heads
//   v_heads                all heads' values where they are wider or narrower than the queries
//   qkv                    queries, keys and values fused
//   head                   the heads counted
//   d_head                 one head's elements
//   q_rank, kv_rank        the latents of multi-head latent attention
//   kv_rank_rope           the key-value latent and the rotary key behind it
//   keys_values            all heads' keys (without the rotary part) and values, unpacked
//   d_ff                   the inner width of an MLP
//   d_expert, d_shared     of one routed expert, of the shared experts together
//   gate_up                gate and up fused: twice the inner width
//   expert                 the experts counted
//   shared_expert          the one gate of a shared expert
//   hidden                 what a square matrix makes of d_model in a head
//   embeddings             the token's and the hidden state, side by side (DeepSeek-V3's layer that
//                          predicts a further token)
//   label                  the classes of a classifier
#pragma once

#include "eckart/core/shape.h"
#include "eckart/io/dtype.h"
#include "eckart/model/config.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// What a tensor does. A bias has the role of its matrix.
enum class Role {
  token_embedding,
  position_embedding,
  type_embedding,
  norm,
  w_q,
  w_k,
  w_v,
  w_qkv,  // fused, as GPT-2's c_attn and Phi-3's qkv_proj
  w_o,
  w_q_a,   // multi-head latent attention: down to the query latent
  w_q_b,   // up from it to the heads
  w_kv_a,  // down to the key-value latent and the shared rotary key
  w_kv_b,  // up from it to the heads' keys and values
  sinks,   // one score a head that a token may attend to instead of any other
  w_gate,
  w_up,
  w_gate_up,  // fused
  w_down,
  router,
  w_unembed,
  pooler,
  head_dense,  // the transform before a masked-language-model head, and the like
  classifier,
};

/// Where a parameter is counted.
enum class Component { embedding, attention, mlp, experts, shared_experts, router, norm, head };

/// How often a token's pass multiplies by a matrix.
enum class Use {
  none,    // added or scaled: biases, norms, sinks
  gather,  // one row is looked up: no product
  per_token,
  per_sequence,  // once a sequence: a pooler, a classifier on the first or last token
};

/// One line of the table: a tensor, or the same tensor in many layers and experts.
struct TensorSpec {
  /// With `{layer}` and `{expert}` where numbers stand: `model.layers.{layer}.mlp.up_proj.weight`.
  std::string name;
  /// As it is stored, axes named; one expert's share when `{expert}` is in the name. The axis
  /// `expert` leads when the experts are stored in one tensor.
  Shape shape;
  Role role = Role::norm;
  Component component = Component::norm;
  Use use = Use::none;
  /// The layers it stands in, ascending; empty for a tensor outside the layers.
  std::vector<Index> layers = {};
  /// How many experts `{expert}` or the axis `expert` counts, and how many of them a token uses.
  Index n_experts = 1;
  Index n_active_experts = 1;
  /// True where the input axis comes first, as in GPT-2's Conv1D and gpt-oss's experts.
  bool input_first = false;
  /// The name of the tensor whose storage it shares; then it has no parameters of its own.
  std::string tied_to = {};
  /// Other names that old files use for it (`…LayerNorm.gamma`).
  std::vector<std::string> also_named = {};

  bool is_bias = false;
  /// Expected in the file, but not part of the model that the totals are about: DeepSeek-V3's layer
  /// that predicts a further token. Its `layers` may go beyond n_layers.
  bool is_extra = false;
};

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): what a token leaves in the cache is
/// one latent and one rotary key, shared by all heads.
struct LatentAttention {
  Index kv_rank = 0;  // kv_lora_rank
  Index d_rope = 0;   // qk_rope_head_dim
};

/// A model as its config describes it.
struct Architecture {
  std::string family;       // `llama`
  std::string model_class;  // `LlamaForCausalLM`
  Index n_layers = 0;
  Index d_model = 0;
  Index n_heads = 0;
  Index n_kv_heads = 0;
  Index d_head = 0;    // of queries and keys
  Index d_head_v = 0;  // of values
  Index d_ff = 0;      // of a dense layer's MLP; 0 when every layer has experts
  Index n_vocab = 0;
  Index context = 0;         // longest sequence it was made for, in tokens
  bool is_decoder = true;    // causal: generates token by token and keeps keys and values
  bool is_tied = false;      // one matrix embeds and unembeds
  bool is_gated = false;     // MLP: down(act(gate x) * up x) instead of down(act(up x))
  bool is_parallel = false;  // attention and MLP read the same input (Phi, GPT-NeoX)
  bool has_alibi = false;    // scores fall with distance; neither learned nor rotary positions
  /// Tokens each layer's attention looks back, itself included; 0 means all. One entry a layer.
  std::vector<Index> windows;
  std::optional<LatentAttention> latent;
  Index n_experts = 0;  // routed, in each layer that has any
  Index n_active_experts = 0;
  Index n_shared_experts = 0;
  Index d_expert = 0;         // inner width of one routed expert
  Index d_shared_expert = 0;  // inner width of all shared experts together
  /// Probability of the config's dropout after attention and MLP; 0: none. Training keeps its
  /// masks.
  double dropout = 0;
  Index n_dropouts = 2;          // how often it stands in a layer
  double attention_dropout = 0;  // of the softmax's weights
  double embedding_dropout = 0;
  /// What the config says the weights are stored as.
  std::optional<Dtype> dtype;
  /// What stands there instead where no dtype is known by that name; else empty.
  std::string unknown_dtype;
  /// `quant_method` of the config's `quantization_config`, or empty. The table is that of the
  /// model without it.
  std::string quantization;
  /// Prefix that the base model's tensors have in some files and lack in others: `bert.`.
  std::string base_prefix;
  std::vector<TensorSpec> tensors;
  /// Values that the config leaves out, with the default taken: a sentence each.
  std::vector<std::string> assumptions;
};

/// A family: how its configs are read. One file of model/families defines one function
/// `Family family_<file name>()`; see docs/adding_a_family.md.
struct Family {
  std::string_view name;
  /// The `model_type` values that it reads.
  std::vector<std::string_view> model_types;
  Architecture (*read)(const Config& config);
};

/// All families, by name.
const std::vector<Family>& families();
/// The family that reads a `model_type`, or nullptr.
const Family* find_family(std::string_view model_type);
/// Reads a config. Throws FormatError when a size is missing or contradicts another (heads that do
/// not divide, more active experts than experts), ArgumentError naming the known families when the
/// `model_type` is unknown or absent, or naming the tensor whose elements a 63-bit count can't
/// hold.
Architecture read_architecture(const Config& config);

/// Parameters of one line of the table in the whole model: 0 when it is tied. Throws ArgumentError,
/// naming the tensor, when they overflow 63 bits; so do the next two.
Index parameters(const TensorSpec& spec);
/// Those of them that one token uses: of the experts, the active ones.
Index active_parameters(const TensorSpec& spec);
/// Multiply-accumulates of one use of it (see Use) in the whole model, tied or not: of the experts,
/// the active ones. 0 for what no product uses.
Index macs_per_use(const TensorSpec& spec);
/// Its name with the numbers filled in.
std::string tensor_name(const TensorSpec& spec, Index layer, Index expert);

std::string_view to_string(Role role);
std::string_view to_string(Component component);

}  // namespace eckart
