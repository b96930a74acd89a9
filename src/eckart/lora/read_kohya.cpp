// kohya's names: `lora_unet_<module with underscores>.lora_down.weight`, and an alpha a module.
#include "eckart/lora/adapter_parts.h"

#include <array>
#include <utility>

namespace eckart::detail {
namespace {

struct Refused {
  std::string_view suffix;
  std::string_view what;
};
constexpr std::array<Refused, 13> refused = {
    {{".lora_mid.weight", "a core tensor between the factors of a convolution (CP)"},
     {".dora_scale",
      "DoRA's magnitude as LyCORIS has it, one for each input where PEFT has one for "
      "each output"},
     {".diff", "a whole difference, which is not of low rank"},
     {".diff_b", "a difference of biases, not of a matrix"},
     {".diff_param", "a whole difference, which is not of low rank"},
     {".set_weight", "a weight that replaces the base's"},
     {".w_norm", "a difference of a norm's weights, not of a matrix"},
     {".b_norm", "a difference of a norm's biases, not of a matrix"},
     {".hada_w1_a", "a LoHa, a product element by element"},
     {".lokr_w1", "a LoKr, a Kronecker product"},
     {".lokr_w1_a", "a LoKr, a Kronecker product"},
     {".oft_blocks", "an OFT, a rotation"},
     {".bias_values", "a sparse bias"}}};

void refuse(const SafetensorsFile& file, const StoredTensor& tensor) {
  for (const Refused& kind : refused) {
    if (tensor.name.ends_with(kind.suffix)) {
      throw_tensor_error(file, tensor,
                         "it is " + std::string(kind.what) +
                             ", but Eckart reads lora_down, lora_up and alpha of kohya's files");
    }
  }
  throw_tensor_error(file, tensor,
                     "it is neither lora_down, lora_up nor alpha, but those are the tensors of "
                     "kohya's files that Eckart reads");
}

}  // namespace

AdapterParts read_kohya(const SafetensorsFile& file) {
  std::map<std::string, ModuleTensors> modules;
  for (const StoredTensor& tensor : file.tensors()) {
    const std::string_view suffix =
        suffix_of(tensor.name, {".lora_down.weight", ".lora_up.weight", ".alpha"});
    if (suffix.empty()) refuse(file, tensor);
    modules[tensor.name.substr(0, tensor.name.size() - suffix.size())][suffix] = &tensor;
  }
  AdapterParts parts;
  for (const auto& [name, tensors] : modules) {
    AdapterModule module;
    module.name = name;
    module.a = find_tensor(tensors, ".lora_down.weight");
    module.b = find_tensor(tensors, ".lora_up.weight");
    if (module.a == nullptr || module.b == nullptr) {
      throw_tensor_error(file, *tensors.begin()->second,
                         std::string("its module has no ") +
                             (module.a == nullptr ? "lora_down" : "lora_up") +
                             ", but a module has both factors");
    }
    set_sizes(file, module);
    const StoredTensor* const alpha = find_tensor(tensors, ".alpha");
    module.alpha = alpha == nullptr ? 0 : number_in(file, *alpha);
    // What trained without alpha, or wrote 0 for it, meant no scale.
    if (module.alpha == 0) module.alpha = static_cast<double>(module.rank);
    module.scale = module.alpha / static_cast<double>(module.rank);
    parts.modules.push_back(std::move(module));
  }
  describe_modules(parts.config, ranks_of(parts.modules));
  return parts;
}

}  // namespace eckart::detail
