// An adapter on disk: factors by module, whatever naming they were saved in.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"
#include "eckart/lora/adapter_config.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eckart {

/// Who wrote the names: PEFT's `base_model.model.<module>.lora_A.weight`, kohya's
/// `lora_unet_<module>.lora_down.weight`, MLX's `<module>.lora_a`.
enum class AdapterNaming { peft, kohya, mlx };
std::string_view to_string(AdapterNaming naming);

enum class AdapterKind { linear, embedding, convolution, experts };
std::string_view to_string(AdapterKind kind);

/// One module's update: W + scale * B A, of d_out x d_in (of experts, one each).
struct AdapterModule {
  /// As the base's files have it without `.weight`: `model.layers.0.self_attn.q_proj`. Of experts
  /// the parameter itself: `model.layers.0.mlp.experts.gate_up_proj`. Of kohya what stands in the
  /// file, dots as underscores, until a base resolves it (see `resolve_names`).
  std::string name;
  AdapterKind kind = AdapterKind::linear;
  const StoredTensor* a = nullptr;
  const StoredTensor* b = nullptr;
  const StoredTensor* bias = nullptr;       // lora_B.bias: d_out
  const StoredTensor* magnitude = nullptr;  // DoRA: d_out
  Index rank = 0;                           // from the factors' shapes
  double alpha = 0;                         // absent in the file: the rank
  double scale = 1;                         // of B A, bias included
  Index d_out = 0;
  Index d_in = 0;
  Index n_experts = 1;
};

/// A tensor that replaces the base's (modules_to_save).
struct SavedTensor {
  std::string name;  // of the base's tensor
  const StoredTensor* stored = nullptr;
};

/// An open adapter, mapped. Movable.
class Adapter {
 public:
  const std::filesystem::path& path() const { return path_; }  // as given
  const AdapterConfig& config() const { return config_; }
  AdapterNaming naming() const { return naming_; }
  const SafetensorsFile& file() const { return file_; }
  /// In natural order of their names.
  const std::vector<AdapterModule>& modules() const { return modules_; }
  const std::vector<SavedTensor>& saved() const { return saved_; }
  const Findings& warnings() const { return warnings_; }
  /// The dtype that most of the factors' elements are in.
  Dtype dtype() const;

  /// Replaces kohya's underscored names by the base's module names, and MLX's and PEFT's by those
  /// that the base's files really use: the name itself; without some of its first parts; or the one
  /// base name that ends with it (`model.` in front or not). Names that no base tensor fits, or
  /// that several do, stay, and are returned with the closest names (of the first twenty).
  /// `base_tensors`: as the base's files have them, with `.weight`. Throws ArgumentError when two
  /// modules, or two saved tensors, would become one, naming both; the names are then of no use.
  struct Unmatched {
    std::string name;
    std::vector<std::string> closest;
  };
  std::vector<Unmatched> resolve_names(const std::vector<std::string>& base_tensors);

 private:
  friend Adapter open_adapter(const std::filesystem::path& path);
  Adapter(std::filesystem::path path, SafetensorsFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  void sort_names();

  std::filesystem::path path_;
  SafetensorsFile file_;
  AdapterConfig config_;
  AdapterNaming naming_ = AdapterNaming::peft;
  std::vector<AdapterModule> modules_;
  std::vector<SavedTensor> saved_;
  Findings warnings_;
};

/// Opens a folder with `adapter_model.safetensors` (PEFT), `adapters.safetensors` (MLX), or one
/// `.safetensors` file (kohya, MLX, PEFT). Every tensor of the file is one of a module or a saved
/// one: anything else is an error, as are a factor without its partner, shapes that do not go
/// together, a rank that is not the config's, and `adapter_model.bin` alone (a pickle: says how to
/// convert it). Copies of the base's own tensors and biases that PEFT would not read are left out,
/// with a warning. A file of PEFT's names without a config has alphas of the ranks, as diffusers
/// saves them. Throws FormatError, FileError.
Adapter open_adapter(const std::filesystem::path& path);

/// The factors of a module (of one expert) as float: delta = scale * b a, b d_out x r, a r x d_in,
/// whatever their layout in the file. Throws ArgumentError for an expert that there is not.
struct AdapterFactors {
  Tensor<float> b;
  Tensor<float> a;
  double scale = 1;
};
AdapterFactors load_factors(const Adapter& adapter, const AdapterModule& module, Index expert = 0);

/// Throws ArgumentError naming the first tensor of the adapter with a NaN or an infinity.
void check_finite(const Adapter& adapter);

}  // namespace eckart
