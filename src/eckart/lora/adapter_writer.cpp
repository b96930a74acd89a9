#include "eckart/lora/adapter_writer.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/findings.h"
#include "eckart/io/mapped_file.h"
#include "eckart/io/narrow.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/widen.h"
#include "eckart/lora/adapter_parts.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* weights_name = "adapter_model.safetensors";
constexpr const char* config_name = "adapter_config.json";
constexpr const char* bias_name = ".lora_B.bias";
constexpr const char* magnitude_name = ".lora_magnitude_vector";

// Parts: `module NAME` and `saved NAME`, so that a module and a tensor may share a name.
constexpr std::string_view module_part = "module ";
constexpr std::string_view saved_part = "saved ";

std::string part_of(std::string_view kind, const std::string& name) {
  return std::string(kind) + name;
}

std::uint64_t bytes_of(Dtype dtype, const Shape& shape) {
  return stored_bytes(dtype, shape.count()).value_or(0);
}

std::span<const float> elements(const Tensor<float>& tensor) {
  return {tensor.data(), static_cast<std::size_t>(tensor.count())};
}

Tensor<float> rounded_tensor(const Tensor<float>& tensor, Dtype dtype) {
  std::vector<std::byte> bytes(bytes_of(dtype, tensor.shape()));
  narrow(dtype, elements(tensor), bytes);
  Tensor<float> result = Tensor<float>::uninitialized(tensor.shape());
  widen(dtype, bytes, std::span<float>(result.data(), static_cast<std::size_t>(result.count())));
  return result;
}

// The tensors of a part: behind one another, as its note lists them.
class PartBytes {
 public:
  explicit PartBytes(Dtype dtype) : dtype_(dtype) {}

  void add(const std::string& suffix, const Shape& shape, const Tensor<float>& values) {
    add_as(dtype_, suffix, shape, values);
  }
  void add_as(Dtype dtype, const std::string& suffix, const Shape& shape,
              const Tensor<float>& values) {
    const std::size_t begin = bytes_.size();
    bytes_.resize(begin + bytes_of(dtype, shape));
    narrow(dtype, elements(values), std::span(bytes_).subspan(begin));
    tensors_.push_back({{"name", suffix}, {"dtype", to_string(dtype)}, {"shape", shape.sizes()}});
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }
  const Json& tensors() const { return tensors_; }

 private:
  Dtype dtype_;
  std::vector<std::byte> bytes_;
  Json tensors_ = Json::array();
};

Tensor<float> transposed(const Tensor<float>& matrix) {
  return Tensor<float>(matrix.view().transpose());
}

// The experts are the slowest in A's rows and the fastest in B's columns.
void add_experts(PartBytes& part, const NewModule& module) {
  const auto n = static_cast<Index>(module.a.size());
  const Index rank = module.a[0].size(0);
  const Index d_in = module.a[0].size(1);
  const Index d_out = module.b[0].size(0);
  Tensor<float> a = Tensor<float>::uninitialized(Shape{rank * n, d_in});
  Tensor<float> b = Tensor<float>::uninitialized(Shape{d_out, rank * n});
  for (Index e = 0; e < n; ++e) {
    const auto at = static_cast<std::size_t>(e);
    std::copy_n(module.a[at].data(), rank * d_in, a.data() + e * rank * d_in);
    for (Index i = 0; i < d_out; ++i) {
      for (Index r = 0; r < rank; ++r) b(i, r * n + e) = module.b[at](i, r);
    }
  }
  part.add(".lora_A.weight", a.shape(), a);
  part.add(".lora_B.weight", b.shape(), b);
}

void add_convolution(PartBytes& part, const NewModule& module) {
  Index field = 1;
  for (const Index size : module.kernel) field *= size;
  const Tensor<float>& a = module.a[0];
  std::vector<Index> a_sizes = {a.size(0), a.size(1) / std::max(field, Index{1})};
  std::vector<Index> b_sizes = {module.b[0].size(0), module.b[0].size(1)};
  for (const Index size : module.kernel) {
    a_sizes.push_back(size);
    b_sizes.push_back(1);
  }
  part.add(".lora_A.weight", Shape(a_sizes), a);
  part.add(".lora_B.weight", Shape(b_sizes), module.b[0]);
}

void check_factors(const NewModule& module) {
  const std::string who = "lora: module " + printable(module.name);
  if (module.b.empty() || module.b.size() != module.a.size() ||
      (module.b.size() > 1 && module.kind != AdapterKind::experts)) {
    throw_argument_error(who + " has " + std::to_string(module.b.size()) + " and " +
                         std::to_string(module.a.size()) +
                         " factors, but it has one pair, of experts one for each");
  }
  const Index rank = module.a[0].size(0);
  for (std::size_t i = 0; i < module.b.size(); ++i) {
    if (module.b[i].size(1) == rank && module.a[i].size(0) == rank && rank > 0) continue;
    throw_argument_error(who + " has factors b " + sizes_to_string(module.b[i].shape()) +
                         " and a " + sizes_to_string(module.a[i].shape()) +
                         ", but b's columns and a's rows are the rank, at least 1, of every expert "
                         "the same");
  }
}

// A trained bias of a module that has a LoRA is that of the layer which PEFT wraps.
std::string saved_key(const std::string& name, const std::map<std::string, std::string>& keys) {
  const std::size_t dot = name.rfind('.');
  const auto module = dot == std::string::npos ? keys.end() : keys.find(name.substr(0, dot));
  if (module == keys.end()) return detail::peft_key(name);
  return module->second + ".base_layer" + name.substr(dot);
}

struct Planned {
  std::string part;
  std::string name;  // in the file
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::uint64_t begin = 0;  // in the part
};

}  // namespace

NewModule rounded(const NewModule& module, Dtype dtype) {
  NewModule result = module;
  for (Tensor<float>& b : result.b) b = rounded_tensor(b, dtype);
  for (Tensor<float>& a : result.a) a = rounded_tensor(a, dtype);
  if (result.bias) result.bias = rounded_tensor(*result.bias, dtype);
  return result;
}

AdapterWriter::AdapterWriter(OutputFolder& folder, Dtype dtype) : folder_(folder), dtype_(dtype) {
  if (dtype != Dtype::f32 && dtype != Dtype::f16 && dtype != Dtype::bf16) {
    throw_argument_error("lora: factors can't be written as " + std::string(to_string(dtype)) +
                         ", but as F32, F16 or BF16");
  }
  for (const std::string& part : folder.parts()) {
    if (!part.starts_with(module_part)) continue;
    const Json note = Json::parse(folder.part_note(part));
    reports_[part.substr(module_part.size())] = note.at("report").get<std::string>();
  }
}

bool AdapterWriter::has(const std::string& name) const {
  return folder_.has_part(part_of(module_part, name));
}

bool AdapterWriter::has_saved(const std::string& name) const {
  return folder_.has_part(part_of(saved_part, name));
}

// The second of two would silently take the place of the first.
void AdapterWriter::take_name(const std::string& part, const std::string& name) {
  if (added_.insert(part).second) return;
  throw_argument_error("lora: " + printable(name) +
                       " is added twice, but an adapter has one of a name");
}

void AdapterWriter::add(const NewModule& module, const std::string& report) {
  check_factors(module);
  take_name(part_of(module_part, module.name), module.name);
  PartBytes part(dtype_);
  switch (module.kind) {
    case AdapterKind::linear:
      part.add(".lora_A.weight", module.a[0].shape(), module.a[0]);
      part.add(".lora_B.weight", module.b[0].shape(), module.b[0]);
      break;
    case AdapterKind::embedding:
      part.add(".lora_embedding_A", Shape{module.b[0].size(1), module.b[0].size(0)},
               transposed(module.b[0]));
      part.add(".lora_embedding_B", Shape{module.a[0].size(1), module.a[0].size(0)},
               transposed(module.a[0]));
      break;
    case AdapterKind::convolution:
      add_convolution(part, module);
      break;
    case AdapterKind::experts:
      add_experts(part, module);
      break;
  }
  if (module.bias) part.add(bias_name, module.bias->shape(), *module.bias);
  if (module.magnitude) {
    part.add_as(Dtype::f32, magnitude_name, module.magnitude->shape(), *module.magnitude);
  }
  const Index rank = module.a[0].size(0);
  const Json note = {{"kind", to_string(module.kind)},
                     {"rank", rank},
                     {"alpha", module.alpha.value_or(static_cast<double>(rank))},
                     {"tensors", part.tensors()},
                     {"report", report}};
  folder_.add_part(part_of(module_part, module.name), part.bytes(), note.dump());
  reports_[module.name] = report;
}

void AdapterWriter::add_saved(const std::string& name, Dtype dtype, const Shape& shape,
                              std::span<const std::byte> bytes) {
  take_name(part_of(saved_part, name), name);
  const Json note = {
      {"tensors", {{{"name", ""}, {"dtype", to_string(dtype)}, {"shape", shape.sizes()}}}}};
  folder_.add_part(part_of(saved_part, name), bytes, note.dump());
}

void AdapterWriter::finish(AdapterConfig config,
                           const std::map<std::string, std::string>& metadata) {
  std::vector<detail::ModuleRank> ranks;
  std::vector<Planned> planned;
  std::map<std::string, Json> notes;
  config.lora_bias = false;
  config.use_dora = false;
  for (const std::string& part : folder_.parts()) {
    // A caller may keep parts of its own.
    if (!part.starts_with(module_part) && !part.starts_with(saved_part)) continue;
    notes[part] = Json::parse(folder_.part_note(part));
  }
  for (const auto& [part, note] : notes) {
    if (!part.starts_with(module_part)) continue;
    ranks.push_back({.name = part.substr(module_part.size()),
                     .kind = detail::parse_kind(note.at("kind").get<std::string>()),
                     .rank = note.at("rank").get<Index>(),
                     .alpha = note.at("alpha").get<double>()});
  }
  const std::map<std::string, std::string> keys = detail::peft_keys(ranks);
  for (const auto& [part, note] : notes) {
    const bool is_module = part.starts_with(module_part);
    const std::string name = part.substr((is_module ? module_part : saved_part).size());
    std::uint64_t begin = 0;
    for (const Json& tensor : note.at("tensors")) {
      Planned plan{.part = part,
                   .name = (is_module ? keys.at(name) : saved_key(name, keys)) +
                           tensor.at("name").get<std::string>(),
                   .dtype = parse_dtype(tensor.at("dtype").get<std::string>()).value_or(Dtype::f32),
                   .shape = Shape(tensor.at("shape").get<std::vector<Index>>()),
                   .begin = begin};
      config.lora_bias = config.lora_bias || plan.name.ends_with(bias_name);
      config.use_dora = config.use_dora || plan.name.ends_with(magnitude_name);
      begin += bytes_of(plan.dtype, plan.shape);
      planned.push_back(std::move(plan));
    }
  }
  std::vector<TensorPlan> plans;
  for (const Planned& tensor : planned) plans.push_back({tensor.name, tensor.dtype, tensor.shape});
  std::map<std::string, std::string> all_metadata = metadata;
  all_metadata.emplace("format", "pt");
  SafetensorsWriter writer(folder_.result_path(weights_name), std::move(plans), all_metadata);
  for (const Planned& tensor : planned) {
    const MappedFile file = open_mapped(folder_.part_path(tensor.part));
    writer.write(tensor.name,
                 file.bytes().subspan(tensor.begin, bytes_of(tensor.dtype, tensor.shape)));
  }
  writer.commit();

  config.use_rslora = false;
  config.init_lora_weights = "true";
  detail::describe_modules(config, ranks);
  save_text(folder_.result_path(config_name), to_json(config));
}

}  // namespace eckart
