#include "eckart/lora/convert_names.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <nlohmann/json.hpp>

namespace eckart::detail {
namespace {

// `self_attn.q_proj` of `model.layers.3.self_attn.q_proj`: what MLX calls it within a layer.
std::string within_layer(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t dot = name.find('.', begin);
    if (dot == std::string::npos) break;
    const std::string part = name.substr(begin, dot - begin);
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos) {
      return name.substr(dot + 1);
    }
    begin = dot + 1;
  }
  return name;
}

Tensor<float> padded(TensorView<const float> matrix, Index rows, Index columns) {
  Tensor<float> result(Shape{rows, columns});
  for (Index i = 0; i < matrix.size(0); ++i) {
    for (Index j = 0; j < matrix.size(1); ++j) result(i, j) = matrix(i, j);
  }
  return result;
}

}  // namespace

std::string kohya_name(const std::string& module, const std::string& prefix) {
  std::string name = module;
  std::replace(name.begin(), name.end(), '.', '_');
  return prefix + "_" + name;
}

Shape down_shape(const Adapter& adapter, const AdapterModule& module) {
  const bool is_plain = adapter.naming() == AdapterNaming::mlx;
  return is_plain ? Shape{module.rank, module.d_in} : module.a->shape.without_names();
}

Shape up_shape(const Adapter& adapter, const AdapterModule& module) {
  const bool is_plain = adapter.naming() == AdapterNaming::mlx;
  return is_plain ? Shape{module.d_out, module.rank} : module.b->shape.without_names();
}

std::vector<TensorPlan> mlx_tensors(const Adapter& adapter, const MlxPlan& plan) {
  std::vector<TensorPlan> plans;
  for (const AdapterModule& module : adapter.modules()) {
    const Index n = module.n_experts;
    Shape a{module.d_in, plan.rank};
    Shape b{plan.rank, module.d_out};
    if (module.kind == AdapterKind::embedding) {
      a = Shape{module.d_out, plan.rank};
      b = Shape{plan.rank, module.d_in};
    } else if (module.kind == AdapterKind::experts) {
      a = Shape{n, plan.rank, module.d_in};
      b = Shape{n, module.d_out, plan.rank};
    }
    plans.push_back({module.name + ".lora_a", plan.dtype, a});
    plans.push_back({module.name + ".lora_b", plan.dtype, b});
    if (module.magnitude != nullptr) {
      plans.push_back({module.name + ".m", Dtype::f32, Shape{module.d_out}});
    }
  }
  return plans;
}

std::string mlx_config(const Adapter& adapter, const MlxPlan& plan) {
  std::set<std::string> keys;
  bool is_dora = false;
  for (const AdapterModule& module : adapter.modules()) {
    keys.insert(within_layer(module.name));
    is_dora = is_dora || module.magnitude != nullptr;
  }
  const nlohmann::ordered_json json = {
      {"fine_tune_type", is_dora ? "dora" : "lora"},
      {"lora_parameters",
       {{"dropout", 0.0}, {"keys", keys}, {"rank", plan.rank}, {"scale", plan.scale}}},
      {"num_layers", -1}};
  return json.dump(4) + '\n';
}

MlxFactors mlx_factors(const AdapterFactors& factors, AdapterKind kind, Index rank) {
  const auto a = factors.a.view();
  const auto b = factors.b.view();
  if (kind == AdapterKind::experts) {
    return {padded(a, rank, a.size(1)), padded(b, b.size(0), rank)};
  }
  if (kind == AdapterKind::embedding) {
    return {padded(b, b.size(0), rank), padded(a, rank, a.size(1))};
  }
  return {padded(a.transpose(), a.size(1), rank), padded(b.transpose(), rank, b.size(0))};
}

}  // namespace eckart::detail
