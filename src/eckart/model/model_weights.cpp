#include "eckart/model/model_weights.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/model/cross_check.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace eckart {
namespace {

using Places = std::map<std::pair<std::size_t, Index>, const LogicalTensor*>;

// What a file may lack: the heads of an encoder, of which sentence encoders have none.
std::set<std::string> dispensable(const Architecture& architecture) {
  std::set<std::string> names;
  if (architecture.family != "bert" && architecture.family != "roberta") return names;
  for (const TensorSpec& spec : architecture.tensors) {
    if (spec.component == Component::head) names.insert(spec.name);
  }
  return names;
}

// The warnings; throws for the first difference that stops the model from being run.
std::vector<std::string> check(const Checkpoint& checkpoint,
                               const std::vector<LogicalTensor>& tensors,
                               const Architecture& architecture, const SpecMatches& matches) {
  const StoredList stored = stored_list(checkpoint);
  const std::vector<Difference> differences = cross_check(
      {.architecture = &architecture, .tensors = &tensors, .stored = &stored, .matches = &matches});
  const std::set<std::string> may_lack = dispensable(architecture);
  std::vector<std::string> warnings;
  for (const Difference& difference : differences) {
    if (difference.level == DifferenceLevel::warning) warnings.push_back(difference.message);
    if (difference.level != DifferenceLevel::error) continue;
    if (difference.kind.starts_with("missing_") && may_lack.contains(difference.tensor)) continue;
    throw_format_error(checkpoint.path(), std::nullopt,
                       printable_path(checkpoint.path()) + ": " + difference.message,
                       difference.hint);
  }
  return warnings;
}

// The table's lines against the file's tensors.
class WeightFinder {
 public:
  WeightFinder(std::shared_ptr<const Checkpoint> checkpoint,
               const std::vector<LogicalTensor>& tensors, const Architecture& architecture)
      : checkpoint_(std::move(checkpoint)), specs_(architecture.tensors) {
    const SpecMatches matches = match_specs(architecture, tensors);
    warnings_ = check(*checkpoint_, tensors, architecture, matches);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const SpecMatch& match = matches.of[i];
      if (match.spec < 0 || !match.is_in_table) continue;
      places_.emplace(std::pair(static_cast<std::size_t>(match.spec), match.layer), &tensors[i]);
    }
  }

  const std::vector<TensorSpec>& specs() const { return specs_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The tensor of a line in a layer (-1: outside of them), or nullptr.
  const LogicalTensor* find(std::size_t spec, Index layer) const {
    // Where two share their storage, the one that the other is tied to counts, if it is there.
    const std::string& target =
        specs_[spec].tied_to.empty() ? specs_[spec].name : specs_[spec].tied_to;
    for (const bool tied : {false, true}) {
      for (std::size_t i = 0; i < specs_.size(); ++i) {
        if ((tied ? specs_[i].tied_to : specs_[i].name) != target) continue;
        const auto at = places_.find({i, layer});
        if (at != places_.end()) return at->second;
      }
    }
    return nullptr;
  }

  std::optional<std::size_t> spec_of(Role role, bool is_bias, Index layer) const {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      if (specs_[i].role == role && specs_[i].is_bias == is_bias && stands_in(i, layer)) return i;
    }
    return std::nullopt;
  }

  bool stands_in(std::size_t spec, Index layer) const {
    const TensorSpec& line = specs_[spec];
    if (line.is_extra) return false;
    if (layer < 0) return line.layers.empty();
    return std::binary_search(line.layers.begin(), line.layers.end(), layer);
  }

  std::optional<StoredMatrix> matrix(Role role, Index layer = -1) const {
    const std::optional<std::size_t> spec = spec_of(role, false, layer);
    const LogicalTensor* const tensor = spec ? find(*spec, layer) : nullptr;
    if (tensor == nullptr) return std::nullopt;
    return StoredMatrix(checkpoint_, *tensor, specs_[*spec].input_first);
  }

  std::optional<LinearWeights> linear(Role role, Index layer = -1) const {
    std::optional<StoredMatrix> found = matrix(role, layer);
    if (!found) return std::nullopt;
    const std::optional<std::size_t> bias = spec_of(role, true, layer);
    const LogicalTensor* const tensor = bias ? find(*bias, layer) : nullptr;
    LinearWeights weights{*std::move(found), std::nullopt};
    if (tensor != nullptr) weights.bias = load_weight(*checkpoint_, *tensor);
    return weights;
  }

  /// The norms among the lines [begin, end), in the order of the table, which is that of their use.
  std::vector<NormWeights> norms(std::size_t begin, std::size_t end, Index layer,
                                 std::string_view axis, Component component) const {
    std::vector<NormWeights> found;
    for (std::size_t i = begin; i < end; ++i) {
      const TensorSpec& line = specs_[i];
      const bool is_it = line.role == Role::norm && line.component == component &&
                         stands_in(i, layer) && line.shape.name(0) == axis;
      const LogicalTensor* const tensor = is_it ? find(i, layer) : nullptr;
      if (tensor == nullptr) continue;
      if (line.is_bias) {
        if (!found.empty()) found.back().bias = load_weight(*checkpoint_, *tensor);
      } else {
        found.push_back({load_weight(*checkpoint_, *tensor), std::nullopt});
      }
    }
    return found;
  }

 private:
  std::shared_ptr<const Checkpoint> checkpoint_;
  const std::vector<TensorSpec>& specs_;
  Places places_;
  std::vector<std::string> warnings_;
};

std::optional<NormWeights> only(std::vector<NormWeights> norms) {
  if (norms.empty()) return std::nullopt;
  return std::move(norms.front());
}

LayerWeights layer_of(const WeightFinder& finder, Index layer) {
  LayerWeights weights;
  const std::size_t end = finder.specs().size();
  weights.norms = finder.norms(0, end, layer, "d_model", Component::norm);
  std::vector<NormWeights> of_heads = finder.norms(0, end, layer, "d_head", Component::norm);
  if (of_heads.size() == 2) {
    weights.q_norm = std::move(of_heads[0]);
    weights.k_norm = std::move(of_heads[1]);
  }
  weights.q = finder.linear(Role::w_q, layer);
  weights.k = finder.linear(Role::w_k, layer);
  weights.v = finder.linear(Role::w_v, layer);
  weights.qkv = finder.linear(Role::w_qkv, layer);
  weights.o = finder.linear(Role::w_o, layer);
  weights.gate = finder.linear(Role::w_gate, layer);
  weights.up = finder.linear(Role::w_up, layer);
  weights.gate_up = finder.linear(Role::w_gate_up, layer);
  weights.down = finder.linear(Role::w_down, layer);
  return weights;
}

void find_head(const WeightFinder& finder, ModelWeights& weights) {
  weights.head_dense = finder.linear(Role::head_dense);
  weights.head_norm = only(finder.norms(0, finder.specs().size(), -1, "d_model", Component::head));
  weights.unembedding = finder.linear(Role::w_unembed);
  for (std::size_t i = 0; i < finder.specs().size(); ++i) {
    const TensorSpec& line = finder.specs()[i];
    const bool is_of_it =
        line.component == Component::head &&
        (line.role == Role::w_unembed || line.role == Role::head_dense || line.role == Role::norm);
    if (is_of_it && finder.find(i, -1) == nullptr) weights.missing_head = line.name;
  }
  if (!weights.missing_head.empty()) weights.unembedding.reset();
}

}  // namespace

Tensor<float> linear(TensorView<const float> x, const LinearWeights& weights) {
  Tensor<float> y = linear(x, weights.matrix);
  if (!weights.bias) return y;
  const Index columns = y.size(1);
  const float* const bias = weights.bias->data();
  parallel_for(y.size(0), std::max<Index>(1, 16'384 / std::max<Index>(1, columns)),
               [&](Index begin, Index end) {
                 for (Index row = begin; row < end; ++row) {
                   float* const at = y.data() + row * columns;
                   for (Index j = 0; j < columns; ++j) at[j] += bias[j];
                 }
               });
  return y;
}

ModelWeights find_weights(const std::shared_ptr<const Checkpoint>& checkpoint,
                          const std::vector<LogicalTensor>& tensors,
                          const Architecture& architecture) {
  const WeightFinder finder(checkpoint, tensors, architecture);
  ModelWeights weights;
  weights.token_embedding = finder.matrix(Role::token_embedding);
  weights.position_embedding = finder.matrix(Role::position_embedding);
  weights.type_embedding = finder.matrix(Role::type_embedding);
  const auto first_layer =
      std::find_if(finder.specs().begin(), finder.specs().end(),
                   [](const TensorSpec& spec) { return !spec.layers.empty(); });
  const auto layers_at = static_cast<std::size_t>(first_layer - finder.specs().begin());
  weights.embedding_norm = only(finder.norms(0, layers_at, -1, "d_model", Component::norm));
  weights.final_norm =
      only(finder.norms(layers_at, finder.specs().size(), -1, "d_model", Component::norm));
  for (Index layer = 0; layer < architecture.n_layers; ++layer) {
    weights.layers.push_back(layer_of(finder, layer));
  }
  find_head(finder, weights);
  weights.warnings = finder.warnings();
  return weights;
}

}  // namespace eckart
