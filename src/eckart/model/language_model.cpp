#include "eckart/model/language_model.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/forward_pass.h"
#include "eckart/model/forward_settings.h"
#include "eckart/model/model_weights.h"
#include "eckart/model/quantization.h"

#include <optional>
#include <system_error>
#include <utility>

namespace eckart {

struct LanguageModel::Parts {
  Config config;
  Architecture architecture;
  ForwardSettings settings;
  std::shared_ptr<const Checkpoint> checkpoint;
  ModelWeights weights;

  detail::ForwardModel model() const { return {architecture, settings, weights}; }
};

namespace {

// What ends a text stands in a file of its own, and in older folders in the config.
void read_end_ids(const std::filesystem::path& folder, ForwardSettings& settings) {
  const std::filesystem::path file = folder / "generation_config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return;
  const std::vector<Index> ids = load_config(file).one_or_more({"eos_token_id"});
  if (!ids.empty()) settings.end_ids = ids;
}

// Whether keys that were cached at a length are turned otherwise at a later one.
bool changes_frequencies(const ForwardSettings& settings, Index before, Index after) {
  if (!settings.rotary || settings.rotary->scaling != RotaryScaling::longrope) return false;
  const Index original = settings.rotary->original_context;
  return before > 0 && before <= original && after > original;
}

}  // namespace

std::uint64_t DecodingState::bytes() const {
  std::uint64_t sum = 0;
  for (const KvCache<float>& layer : layers_) sum += layer.bytes();
  return sum;
}

const Config& LanguageModel::config() const { return parts_->config; }
const Architecture& LanguageModel::architecture() const { return parts_->architecture; }
const Checkpoint& LanguageModel::checkpoint() const { return *parts_->checkpoint; }
Index LanguageModel::context() const { return parts_->settings.context; }
const std::vector<Index>& LanguageModel::end_ids() const { return parts_->settings.end_ids; }
const std::vector<std::string>& LanguageModel::warnings() const { return parts_->weights.warnings; }
bool LanguageModel::has_logits() const { return parts_->weights.unembedding.has_value(); }

ForwardResult LanguageModel::forward(const std::vector<TokenSequence>& batch,
                                     const ForwardOptions& options) const {
  const detail::ForwardModel model = parts_->model();
  return detail::ForwardPass(model, detail::pass_tokens(model, batch, 0), options, nullptr).run();
}

DecodingState LanguageModel::start() const {
  const Architecture& a = parts_->architecture;
  if (!parts_->settings.is_causal) {
    throw_argument_error("start: the tokens of " + a.model_class +
                         " see those that follow, but only a causal model reads token by token");
  }
  DecodingState state;
  state.model_ = parts_;
  for (const Index window : a.windows) {
    state.layers_.emplace_back(KvCacheOptions{
        .n_kv_heads = a.n_kv_heads, .d_head = a.d_head, .d_head_v = a.d_head_v, .window = window});
  }
  return state;
}

ForwardResult LanguageModel::extend(DecodingState& state, const std::vector<Index>& ids,
                                    const ForwardOptions& options) const {
  if (state.model_ != parts_) {
    throw_argument_error(
        "extend: the state is of another model, but must be one that this model's "
        "start() made");
  }
  if (state.is_broken_) {
    throw_argument_error(
        "extend: an earlier call failed halfway, so that the layers of the state hold different "
        "tokens",
        "begin again with start()");
  }
  const detail::ForwardModel model = parts_->model();
  detail::PassTokens tokens = detail::pass_tokens(model, {{.ids = ids}}, state.length_);
  if (options.logits != Logits::none) detail::check_logits(model);
  const Index length = state.length_ + static_cast<Index>(ids.size());
  state.is_broken_ = true;
  if (changes_frequencies(parts_->settings, state.length_, length)) {
    state.layers_ = start().layers_;
    detail::PassTokens before = detail::pass_tokens(model, {{.ids = state.ids_}}, 0);
    before.context = length;
    const ForwardOptions nothing;
    static_cast<void>(detail::ForwardPass(model, std::move(before), nothing, &state.layers_).run());
  }
  ForwardResult result =
      detail::ForwardPass(model, std::move(tokens), options, &state.layers_).run();
  state.ids_.insert(state.ids_.end(), ids.begin(), ids.end());
  state.length_ = length;
  state.is_broken_ = false;
  return result;
}

Tensor<float> LanguageModel::unembed(TensorView<const float> residual) const {
  const detail::ForwardModel model = parts_->model();
  if (residual.rank() != 2 || residual.size(1) != model.architecture.d_model) {
    throw_shape_error("unembed: the residual stream is " + to_string(residual.shape()) +
                      ", but must be token x " + std::to_string(model.architecture.d_model) +
                      " (d_model)");
  }
  if (!model.weights.final_norm) return detail::logits_of(model, residual);
  return detail::logits_of(model,
                           detail::norm(model.settings, *model.weights.final_norm, residual));
}

LanguageModel open_language_model(const std::filesystem::path& path) {
  auto checkpoint = std::make_shared<const Checkpoint>(open_checkpoint(path));
  Config config = load_config(checkpoint->folder());
  Architecture architecture = read_architecture(config);
  ForwardSettings settings = read_forward_settings(config, architecture);
  read_end_ids(checkpoint->folder(), settings);
  const std::vector<LogicalTensor> tensors =
      logical_tensors(*checkpoint, read_quantization(config));
  ModelWeights weights = find_weights(checkpoint, tensors, architecture);
  LanguageModel model;
  model.parts_ = std::make_shared<const LanguageModel::Parts>(
      LanguageModel::Parts{std::move(config), std::move(architecture), std::move(settings),
                           std::move(checkpoint), std::move(weights)});
  return model;
}

}  // namespace eckart
