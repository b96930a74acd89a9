#include "pca_model.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/io/npz.h"
#include "eckart/io/npz_write.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "usage.h"
#include <fmt/format.h>

namespace eckart::cli {
namespace {

bool has_array(const NpzFile& file, std::string_view name) {
  return std::any_of(file.members().begin(), file.members().end(),
                     [&](const NpzMember& member) { return member.name == name; });
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw_argument_error(fmt::format("pca: {} is no model of principal components: {}",
                                   printable_path(path.string()), why),
                       "`eckart pca fit X.npy -o model.npz` writes one");
}

[[noreturn]] void refuse(const NpzFile& file, const std::string& why) { refuse(file.path(), why); }

// An array of exactly these sizes.
template <class T>
Tensor<T> load_sized(const NpzFile& file, std::string_view name, const Shape& sizes) {
  if (!has_array(file, name)) refuse(file, fmt::format("it has no array {}", name));
  Tensor<T> tensor = file.load<T>(name);
  if (!same_sizes(tensor.shape(), sizes)) {
    refuse(file, fmt::format("its array {} is {}, but its components make it {}", name,
                             to_string(tensor.shape()), to_string(sizes)));
  }
  return tensor;
}

// A number that counts something, from 0 to `most`.
Index load_count(const NpzFile& file, std::string_view name, Index most) {
  const double number = load_sized<double>(file, name, Shape{}).data()[0];
  if (!(number >= 0 && number <= static_cast<double>(most)) || number != std::floor(number)) {
    refuse(file, fmt::format("its {} is {}", name, number));
  }
  return static_cast<Index>(number);
}

}  // namespace

std::optional<NpzWriter> open_model_output(const std::string& path, std::string_view operation) {
  if (path.empty()) return std::nullopt;
  if (std::filesystem::path(path).extension() != ".npz") {
    throw_usage_error(fmt::format("{}: a model can't be written to {}, but to an .npz file",
                                  operation, printable_path(path)));
  }
  return std::make_optional<NpzWriter>(path);
}

template <class T>
void save_pca(NpzWriter& writer, const Pca<T>& model, const Tensor<T>& scores) {
  const auto number = [](Index value) { return Tensor<std::int64_t>(Shape{}, value); };
  writer.add("mean", model.mean);
  if (model.scale.count() > 0) writer.add("scale", model.scale);
  writer.add("components", model.components);
  writer.add("explained_variance", model.explained_variance);
  writer.add("explained_variance_ratio", model.explained_variance_ratio);
  writer.add("total_variance", Tensor<double>(Shape{}, model.total_variance));
  writer.add("n_samples", number(model.n_samples));
  writer.add("whiten", number(model.whiten ? 1 : 0));
  writer.add("rank", number(model.rank));
  writer.add("scores", scores);
  writer.commit();
}

bool is_pca_model(const std::string& argument) {
  std::error_code ignored;
  const std::filesystem::path path(argument);
  if (path.extension() != ".npz" || !std::filesystem::is_regular_file(path, ignored)) return false;
  return has_array(open_npz(path), "components");
}

void check_model_path(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".npz") refuse(path, "a model is an .npz file");
}

template <class T>
Pca<T> load_pca(const std::string& path) {
  const NpzFile file = open_npz(path);
  if (!has_array(file, "components")) refuse(file, "it has no array components");
  Pca<T> model;
  model.components = file.load<T>("components");
  if (model.components.rank() != 2) {
    refuse(file,
           "its components are " + to_string(model.components.shape()) + ", but must be a matrix");
  }
  const Index k = model.components.size(0);
  const Index d = model.components.size(1);
  model.components = std::move(model.components).named({"component", ""});
  model.mean = load_sized<double>(file, "mean", {d});
  if (has_array(file, "scale")) model.scale = load_sized<double>(file, "scale", {d});
  model.explained_variance = load_sized<double>(file, "explained_variance", {k});
  model.explained_variance_ratio = load_sized<double>(file, "explained_variance_ratio", {k});
  model.total_variance = load_sized<double>(file, "total_variance", Shape{}).data()[0];
  model.n_samples = load_count(file, "n_samples", Index{1} << 53);
  model.whiten = load_count(file, "whiten", 1) == 1;
  model.rank = load_count(file, "rank", k);
  return model;
}

Tensor<double> load_pca_scores(const std::string& path) {
  const NpzFile file = open_npz(path);
  if (!has_array(file, "scores")) refuse(file, "it has no array scores");
  return file.load<double>("scores");
}

template void save_pca(NpzWriter&, const Pca<float>&, const Tensor<float>&);
template void save_pca(NpzWriter&, const Pca<double>&, const Tensor<double>&);
template Pca<float> load_pca(const std::string&);
template Pca<double> load_pca(const std::string&);

}  // namespace eckart::cli
