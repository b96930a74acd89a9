// Writing an adapter in PEFT's format, module by module.
#pragma once

#include "eckart/core/tensor.h"
#include "eckart/io/dtype.h"
#include "eckart/lora/adapter.h"
#include "eckart/lora/adapter_config.h"
#include "eckart/lora/output_folder.h"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace eckart {

/// One module as it will be saved: delta = alpha / rank * b a. By default alpha is the rank, so that
/// the scale is 1.
struct NewModule {
  std::string name;  // as AdapterModule
  AdapterKind kind = AdapterKind::linear;
  /// One pair; of experts one a expert, all of the same rank. b d_out x r, a r x d_in.
  std::vector<Tensor<float>> b;
  std::vector<Tensor<float>> a;
  std::optional<Tensor<float>> bias = {};  // d_out
  std::vector<Index> kernel = {};  // of convolutions: the axes after d_in, which a's columns hold
  std::optional<double> alpha = {};
  std::optional<Tensor<float>> magnitude =
      {};  // DoRA: d_out; saved in F32 whatever the factors are
};

/// What the file's dtype (as AdapterWriter's) makes of the factors: the same, as they will be read.
NewModule rounded(const NewModule& module, Dtype dtype);

/// Collects modules in an output folder as they are finished (one file a part, so that a killed run
/// goes on) and puts them together as `adapter_model.safetensors` and `adapter_config.json`.
/// Memory: one module.
class AdapterWriter {
 public:
  /// `dtype`: of the factors, F32, F16 or BF16. Throws ArgumentError for others.
  AdapterWriter(OutputFolder& folder, Dtype dtype);

  /// Whether a killed run had finished this module; it is then not to be added again.
  bool has(const std::string& name) const;
  /// The same of a tensor that is carried as it is.
  bool has_saved(const std::string& name) const;
  /// Writes it as a part. `report`: JSON text that stays with the part, for the final report. Throws
  /// ArgumentError when the factors don't go together, and for a name that was added already (a
  /// killed run's does not count); FileError.
  void add(const NewModule& module, const std::string& report = {});
  /// A tensor to be carried as it is (modules_to_save), with its bytes. Throws as `add`.
  void add_saved(const std::string& name, Dtype dtype, const Shape& shape,
                 std::span<const std::byte> bytes);
  /// The report of each finished module, by name.
  const std::map<std::string, std::string>& reports() const { return reports_; }

  /// Writes both files. `config`: everything but r, lora_alpha, rank_pattern, alpha_pattern,
  /// target_modules and target_parameters, which come from the modules: full names, patterns
  /// escaped, for ranks other than the largest; use_rslora is unset and
  /// init_lora_weights true; lora_bias and use_dora are set when a module has a bias or a magnitude.
  /// The folder is not committed. Throws FileError.
  void finish(AdapterConfig config, const std::map<std::string, std::string>& metadata = {});

 private:
  void take_name(const std::string& part, const std::string& name);

  OutputFolder& folder_;
  Dtype dtype_;
  std::map<std::string, std::string> reports_;
  std::set<std::string> added_;  // parts of this run
};

}  // namespace eckart
