// A base and a tuned model on disk, made of small tensors.
#pragma once

#include "eckart/core/errors.h"
#include "eckart/core/random.h"
#include "eckart/io/narrow.h"
#include "eckart/lora/adapter.h"
#include "eckart/lora/extract.h"
#include "eckart/model/config.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart::testing {

/// Whole numbers from -`largest` to `largest`: sums and differences of them are exact.
inline Tensor<float> whole_numbers(const Shape& shape, std::uint64_t stream, int largest = 8) {
  Tensor<float> result = Tensor<float>::uninitialized(shape);
  RandomStream random(7, stream);
  random.fill_normal(std::span<float>(result.data(), static_cast<std::size_t>(result.count())));
  for (Index i = 0; i < result.count(); ++i) {
    const float value = std::nearbyint(result.data()[i] * static_cast<float>(largest) / 2);
    result.data()[i] =
        std::min(std::max(value, static_cast<float>(-largest)), static_cast<float>(largest));
  }
  return result;
}

/// b a with whole numbers, of at most that rank.
inline Tensor<float> low_rank_change(Index rows, Index columns, Index rank, std::uint64_t stream) {
  const Tensor<float> b = whole_numbers({rows, rank}, stream, 2);
  const Tensor<float> a = whole_numbers({rank, columns}, stream + 1000, 2);
  Tensor<float> result({rows, columns});
  for (Index i = 0; i < rows; ++i) {
    for (Index k = 0; k < rank; ++k) {
      for (Index j = 0; j < columns; ++j) result(i, j) += b(i, k) * a(k, j);
    }
  }
  return result;
}

class ModelPair {
 public:
  /// A tensor of both models: whole numbers, 64 times as large as the changes.
  ModelPair& add(const std::string& name, const Shape& shape) {
    Tensor<float> values = whole_numbers(shape, base.size());
    for (Index i = 0; i < values.count(); ++i) values.data()[i] *= 64;
    tuned.emplace(name, values);
    base.emplace(name, std::move(values));
    return *this;
  }
  ModelPair& change(const std::string& name, const Tensor<float>& change) {
    Tensor<float>& values = tuned.at(name);
    for (Index i = 0; i < values.count(); ++i) values.data()[i] += change.data()[i];
    return *this;
  }

  /// Writes both and extracts into `out`.
  ExtractReport extract(const ExtractOptions& options, const std::string& out = "adapter") {
    open();
    return extract_adapter(sources(), folder / out, options);
  }
  void open() {
    write(folder / "base", base, base_dtype);
    write(folder / "tuned", tuned, tuned_dtype);
    base_.emplace(open_checkpoint(folder / "base"));
    tuned_.emplace(open_checkpoint(folder / "tuned"));
    base_tensors_ = logical_tensors(*base_);
    tuned_tensors_ = logical_tensors(*tuned_);
    if (config_json.empty()) return;
    config_.emplace(parse_config(config_json, "config.json"));
    if (find_family(config_->model_type()) != nullptr) {
      architecture_.emplace(read_architecture(*config_));
    }
  }
  ExtractSources sources() const {
    return {*base_,
            base_tensors_,
            *tuned_,
            tuned_tensors_,
            architecture_ ? &*architecture_ : nullptr,
            config_ ? &*config_ : nullptr};
  }
  Adapter adapter(const std::string& out = "adapter") const { return open_adapter(folder / out); }

  ScratchFolder folder;
  std::map<std::string, Tensor<float>> base;
  std::map<std::string, Tensor<float>> tuned;
  Dtype base_dtype = Dtype::f32;
  Dtype tuned_dtype = Dtype::f32;
  std::string config_json;

 private:
  static void write(const std::filesystem::path& path,
                    const std::map<std::string, Tensor<float>>& tensors, Dtype dtype) {
    std::filesystem::create_directories(path);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<TensorBytes> all;
    for (const auto& [name, values] : tensors) {
      const auto n = static_cast<std::size_t>(values.count());
      bytes.emplace_back(n * static_cast<std::size_t>(bits(dtype)) / 8);
      narrow(dtype, {values.data(), n}, bytes.back());
    }
    std::size_t i = 0;
    for (const auto& [name, values] : tensors) {
      all.push_back({{name, dtype, values.shape()}, bytes[i++]});
    }
    save_safetensors(path / "model.safetensors", all);
  }

  std::optional<Checkpoint> base_;
  std::optional<Checkpoint> tuned_;
  std::vector<LogicalTensor> base_tensors_;
  std::vector<LogicalTensor> tuned_tensors_;
  std::optional<Config> config_;
  std::optional<Architecture> architecture_;
};

/// B A of a module of an adapter, scaled.
inline Tensor<float> delta_of(const Adapter& adapter, const std::string& name, Index expert = 0) {
  for (const AdapterModule& module : adapter.modules()) {
    if (module.name != name) continue;
    const AdapterFactors factors = load_factors(adapter, module, expert);
    Tensor<float> result({factors.b.size(0), factors.a.size(1)});
    for (Index i = 0; i < result.size(0); ++i) {
      for (Index k = 0; k < factors.a.size(0); ++k) {
        const float b = factors.b(i, k) * static_cast<float>(factors.scale);
        for (Index j = 0; j < result.size(1); ++j) result(i, j) += b * factors.a(k, j);
      }
    }
    return result;
  }
  ADD_FAILURE() << "the adapter has no module " << name;
  return {};
}

// Factors in float of a change whose entries are at most 8: their product is off by a few eps times
// the sizes of the entries and of the singular values, which are below 200 here.
constexpr Bound float_bound{.absolute = 1e-4};

inline Tensor<float> transposed(const Tensor<float>& matrix) {
  return Tensor<float>(matrix.view().transpose());
}

inline double norm_of(const Tensor<float>& values) {
  double squares = 0;
  for (Index i = 0; i < values.count(); ++i) {
    squares += static_cast<double>(values.data()[i]) * static_cast<double>(values.data()[i]);
  }
  return std::sqrt(squares);
}

/// What `extract` says of a pair of models with this much wrong.
inline std::string refusal(ModelPair& pair,
                           const ExtractOptions& options = {.ranks = {.rank = 1}}) {
  return thrown_by<ArgumentError>([&] { pair.extract(options); });
}

inline const ExtractedTensor& entry_of(const ExtractReport& report, const std::string& name) {
  for (const ExtractedTensor& tensor : report.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "the report has no tensor " << name;
  return report.tensors.front();
}

}  // namespace eckart::testing
