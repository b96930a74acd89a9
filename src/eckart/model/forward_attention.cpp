// The attention of one layer: projected heads, turned, mixed sequence by sequence.
#include "eckart/core/parallel.h"
#include "eckart/model/forward_pass.h"

#include <algorithm>

namespace eckart::detail {

struct ForwardPass::Projected {
  // A head's vectors in a matrix of token rows.
  struct Heads {
    const float* data = nullptr;
    Index n_heads = 0, width = 0;
    Index row_stride = 0, head_stride = 0;

    /// head x token x width of tokens [begin, end).
    TensorView<const float> rows(Index begin, Index end) const {
      return TensorView<const float>(data + begin * row_stride, {n_heads, end - begin, width},
                                     {head_stride, row_stride, 1});
    }
  };

  std::vector<Tensor<float>> storage;
  Heads q, k, v;
};

ForwardPass::Projected ForwardPass::project(Index layer, const Tensor<float>& x) const {
  const LayerWeights& weights = model_.weights.layers[static_cast<std::size_t>(layer)];
  const Architecture& a = model_.architecture;
  Projected found;
  if (weights.qkv) {
    const Tensor<float>& fused = found.storage.emplace_back(linear(x.view(), *weights.qkv));
    const Index row = fused.size(1), d = a.d_head;
    const float* const data = fused.data();
    if (model_.settings.qkv_order == QkvOrder::by_head) {
      found.q = {data, a.n_heads, d, row, 3 * d};
      found.k = {data + d, a.n_heads, d, row, 3 * d};
      found.v = {data + 2 * d, a.n_heads, d, row, 3 * d};
    } else {
      const Index keys = a.n_heads * d, values = keys + a.n_kv_heads * d;
      found.q = {data, a.n_heads, d, row, d};
      found.k = {data + keys, a.n_kv_heads, d, row, d};
      found.v = {data + values, a.n_kv_heads, d, row, d};
    }
    return found;
  }
  const auto heads = [&](const LinearWeights& of, Index n_heads, Index width) {
    const Tensor<float>& y = found.storage.emplace_back(linear(x.view(), of));
    return Projected::Heads{y.data(), n_heads, width, y.size(1), width};
  };
  found.storage.reserve(3);
  found.q = heads(*weights.q, a.n_heads, a.d_head);
  found.k = heads(*weights.k, a.n_kv_heads, a.d_head);
  found.v = heads(*weights.v, a.n_kv_heads, a.d_head_v);
  return found;
}

RotaryTable<float> ForwardPass::rotary_of(Index sequence) const {
  const auto at = static_cast<std::size_t>(sequence);
  const std::vector<Index> positions(tokens_.positions.begin() + tokens_.begin[at],
                                     tokens_.positions.begin() + tokens_.begin[at + 1]);
  RotaryOptions options = *model_.settings.rotary;
  options.context = std::max(positions.back() + 1, tokens_.context);
  return rotary_table<float>(model_.architecture.d_head, positions, options);
}

AttentionOptions<float> ForwardPass::attention_options(Index layer, Index sequence) const {
  const auto at = static_cast<std::size_t>(layer);
  AttentionOptions<float> options;
  options.causal = model_.settings.is_causal;
  options.window = options.causal ? model_.architecture.windows[at] : 0;
  options.scale = model_.settings.scales[at];
  options.softcap = model_.settings.attention_softcap;
  const Tensor<bool>& mask = tokens_.masks[static_cast<std::size_t>(sequence)];
  if (mask.count() > 0) options.mask = mask.view();
  return options;
}

void ForwardPass::attend_sequence(Index layer, Index sequence, const Projected& projected,
                                  Tensor<float>& mixed) {
  const auto at = static_cast<std::size_t>(sequence);
  const LayerWeights& weights = model_.weights.layers[static_cast<std::size_t>(layer)];
  const Index begin = tokens_.begin[at], end = tokens_.begin[at + 1];
  const auto prepared = [&](const Projected::Heads& heads, const std::optional<NormWeights>& by) {
    Tensor<float> x = by ? norm(model_.settings, *by, heads.rows(begin, end))
                         : Tensor<float>(heads.rows(begin, end));
    return rotaries_.empty() ? std::move(x) : rotary(x, rotaries_[at]);
  };
  const Tensor<float> q = prepared(projected.q, weights.q_norm);
  const Tensor<float> k = prepared(projected.k, weights.k_norm);
  const TensorView<const float> v = projected.v.rows(begin, end);
  show("q", layer, q.view().named({"head", "token", "d_head"}));
  show("k", layer, k.view().named({"head", "token", "d_head"}));
  show("v", layer, v.named({"head", "token", "d_head"}));

  const AttentionOptions<float> options = attention_options(layer, sequence);
  KvCache<float>* const cache =
      caches_ == nullptr ? nullptr : &(*caches_)[static_cast<std::size_t>(layer)];
  if (cache != nullptr) cache->append(k.view(), v);
  if (options_.attention_weights) {
    Tensor<float> table = cache == nullptr ? attention_weights(q.view(), k.view(), options)
                                           : attention_weights(q, cache->keys(), options);
    table = std::move(table).named({"head", "query", "key"});
    show("attention_weights", layer, table);
    if (options_.keeps_attention) {
      result_.attention[static_cast<std::size_t>(layer)][at] = std::move(table);
    }
  }
  AttentionOptions<float> cached;
  cached.scale = options.scale;
  cached.softcap = options.softcap;
  const Tensor<float> heads = cache == nullptr ? attention(q.view(), k.view(), v, options)
                                               : cache->attend(q.view(), cached);
  const Index width = heads.size(2), row = mixed.size(1);
  for (Index head = 0; head < heads.size(0); ++head) {
    for (Index t = 0; t < heads.size(1); ++t) {
      std::copy_n(&heads(head, t, 0), width, mixed.data() + (begin + t) * row + head * width);
    }
  }
}

Tensor<float> ForwardPass::attend(Index layer, const Tensor<float>& x) {
  const LayerWeights& weights = model_.weights.layers[static_cast<std::size_t>(layer)];
  const Architecture& a = model_.architecture;
  const Projected projected = project(layer, x);
  Tensor<float> mixed = Tensor<float>::uninitialized({tokens_.count(), a.n_heads * a.d_head_v});
  // Whoever watches is called from one thread, in the order of the sequences.
  const Index grain = options_.on_intermediate ? tokens_.n_sequences() : 1;
  parallel_for(tokens_.n_sequences(), grain, [&](Index begin, Index end) {
    for (Index sequence = begin; sequence < end; ++sequence) {
      attend_sequence(layer, sequence, projected, mixed);
    }
  });
  show("mixed", layer, mixed.view().named({"token", "heads"}));
  Tensor<float> y = linear(mixed.view(), *weights.o);
  show("attention", layer, y.view().named({"token", "d_model"}));
  return y;
}

}  // namespace eckart::detail
