#include "eckart/model/shape_words.h"

#include "eckart/model/prose.h"

#include <cstddef>
#include <utility>

namespace eckart::detail {

bool is_other_vocabulary(const LogicalTensor& tensor, const TensorSpec& spec) {
  return tensor.has_shape && spec.shape.rank() == tensor.shape.rank() && spec.shape.rank() > 0 &&
         spec.shape.name(0) == "vocab" && spec.shape.size(0) != tensor.shape.size(0);
}

std::vector<FoundShape> found_shapes(const Architecture& architecture,
                                     const std::vector<LogicalTensor>& tensors,
                                     const SpecMatches& matches) {
  std::vector<bool> has_shape(architecture.tensors.size(), false);
  std::vector<FoundShape> found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SpecMatch& match = matches.of[i];
    if (match.spec < 0 || !match.is_in_table || !tensors[i].has_shape) continue;
    const auto spec = static_cast<std::size_t>(match.spec);
    if (has_shape[spec]) continue;
    has_shape[spec] = true;
    // In the table's order of axes, where storage has another.
    const TensorSpec& line = architecture.tensors[spec];
    found.push_back({&line, has_shape_of(tensors[i], line) ? line.shape : tensors[i].shape});
  }
  return found;
}

ShapeWords shape_words(const Architecture& architecture, const LogicalTensor& tensor,
                       const TensorSpec& spec, const std::vector<FoundShape>& others) {
  ShapeWords words;
  words.expected = to_string(spec.shape);
  if (!tensor.has_shape) {
    words.found = grouped_digits(tensor.shape.count()) + " values (" + tensor.storage + ')';
    words.expected = grouped_digits(spec.shape.count()) + ", " + words.expected;
    return words;
  }
  words.found = sizes_to_string(tensor.shape);
  const FoundShape found = {&spec, tensor.shape};
  const std::string origin = axis_origin(architecture, found);
  if (!origin.empty()) words.expected += ", where " + origin;
  words.hint = fit_in_words(architecture, found, others);
  constexpr Index padding = 64;  // rows that fill a vocabulary up to what kernels like
  if (is_other_vocabulary(tensor, spec) && !words.hint.empty() &&
      tensor.shape.size(0) > architecture.n_vocab && tensor.shape.size(0) % padding == 0) {
    words.hint += "; rows beyond the tokenizer's are padding to a multiple of 64";
  }
  return words;
}

bool has_shape_of(const LogicalTensor& tensor, const TensorSpec& spec) {
  if (!tensor.has_shape) return tensor.shape.count() == spec.shape.count();
  if (same_sizes(tensor.shape, spec.shape)) return true;
  if (tensor.storage != "MXFP4" || tensor.shape.rank() < 2) return false;
  std::vector<Index> sizes = tensor.shape.sizes();
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  return sizes == spec.shape.sizes();
}

}  // namespace eckart::detail
