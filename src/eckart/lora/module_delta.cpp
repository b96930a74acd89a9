#include "eckart/lora/module_delta.h"

#include "eckart/core/errors.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace eckart::detail {
namespace {

float largest_entry(const Tensor<float>& a) {
  float largest = 0;
  for_each_element([&](const float& x) { largest = std::max(largest, std::abs(x)); }, a.view());
  return largest;
}

void multiply(Tensor<float>& a, double factor) {
  for_each_element([factor](float& x) { x = static_cast<float>(static_cast<double>(x) * factor); },
                   a.view());
}

// factor in [1, 2) times a power of 2.
struct Split {
  double factor = 1;
  int exponent = 0;
};

Split split(double weight) {
  int exponent = 0;
  const double half = std::frexp(weight, &exponent);
  return {2 * half, exponent - 1};
}

void scale(AdapterFactors& factors, double weight) {
  const double total = factors.scale * weight;
  factors.scale = 1;
  if (total == 1) return;
  const float of_b = largest_entry(factors.b), of_a = largest_entry(factors.a);
  if (total == 0 || of_b == 0 || of_a == 0) {
    multiply(factors.b, 0);
    return;
  }
  const auto [factor, exponent] = split(total);
  const int to_a = (exponent + std::ilogb(of_b) - std::ilogb(of_a)) / 2;
  multiply(factors.a, std::ldexp(1.0, to_a));
  multiply(factors.b, std::ldexp(factor, exponent - to_a));
}

Tensor<float> joined(const std::vector<const Tensor<float>*>& parts, Index axis) {
  std::vector<Index> sizes = parts.front()->shape().sizes();
  const auto at = static_cast<std::size_t>(axis);
  sizes[at] = 0;
  for (const Tensor<float>* part : parts) sizes[at] += part->size(axis);
  Tensor<float> whole = Tensor<float>::uninitialized(Shape(sizes));
  Index begin = 0;
  for (const Tensor<float>* part : parts) {
    const Index end = begin + part->size(axis);
    for_each_element([](float& to, const float& from) { to = from; },
                     whole.view().slice(axis, {begin, end}), part->view());
    begin = end;
  }
  return whole;
}

}  // namespace

ModuleDelta load_delta(const Adapter& adapter, const AdapterModule& module) {
  ModuleDelta delta{.name = module.name, .kind = module.kind, .factors = {}};
  for (Index expert = 0; expert < module.n_experts; ++expert) {
    delta.factors.push_back(load_factors(adapter, module, expert));
  }
  if (module.bias != nullptr) {
    Tensor<float> bias = Tensor<float>::uninitialized(module.bias->shape);
    widen(module.bias->dtype, adapter.file().bytes(*module.bias),
          std::span<float>(bias.data(), static_cast<std::size_t>(bias.count())));
    multiply(bias, module.scale);
    delta.bias = std::move(bias);
  }
  if (module.kind == AdapterKind::convolution) {
    const std::vector<Index>& sizes = module.a->shape.sizes();
    delta.kernel.assign(sizes.begin() + 2, sizes.end());
  }
  return delta;
}

ModuleDelta scaled(ModuleDelta delta, double weight) {
  for (AdapterFactors& factors : delta.factors) scale(factors, weight);
  if (delta.bias && weight != 1) multiply(*delta.bias, weight);
  return delta;
}

ModuleDelta concatenated(std::vector<ModuleDelta> deltas) {
  if (deltas.size() == 1) return std::move(deltas.front());
  ModuleDelta sum{.name = deltas.front().name, .kind = deltas.front().kind, .factors = {}};
  sum.kernel = deltas.front().kernel;
  for (std::size_t expert = 0; expert < deltas.front().factors.size(); ++expert) {
    std::vector<const Tensor<float>*> b, a;
    for (const ModuleDelta& delta : deltas) {
      b.push_back(&delta.factors[expert].b);
      a.push_back(&delta.factors[expert].a);
    }
    sum.factors.push_back({joined(b, 1), joined(a, 0), 1});
  }
  for (ModuleDelta& delta : deltas) {
    if (!delta.bias) continue;
    if (!sum.bias) {
      sum.bias = std::move(delta.bias);
    } else {
      for_each_element([](float& to, const float& from) { to += from; }, sum.bias->view(),
                       std::as_const(*delta.bias).view());
    }
  }
  return sum;
}

}  // namespace eckart::detail
