#include "eckart/model/cross_check.h"

#include "eckart/model/difference_list.h"
#include "eckart/model/prose.h"
#include "eckart/model/shape_fit.h"
#include "eckart/model/table_check.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace eckart {
namespace {

using detail::DifferenceList;

void note_buffers(const std::vector<LogicalTensor>& tensors, DifferenceList& list) {
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.kind == TensorKind::parameter) continue;
    const bool is_buffer = tensor.kind == TensorKind::buffer;
    const std::string what = is_buffer ? "a buffer" : "a scale of quantized storage";
    list.add({.level = DifferenceLevel::note,
              .kind = is_buffer ? "buffer" : "quantization_tensor",
              .name = tensor.name,
              .found = sizes_to_string(tensor.shape) + ' ' + tensor.storage,
              .sentence = "{name} is " + what + ", {elements} " + tensor.storage +
                          ": not counted as parameters",
              .elements = tensor.shape.count(),
              .bytes = tensor.bytes});
  }
}

void note_scales(const std::vector<LogicalTensor>& tensors, DifferenceList& list) {
  Index n_matrices = 0;
  Index elements = 0;
  std::uint64_t bytes = 0;
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.side_bytes == 0) continue;
    ++n_matrices;
    elements += tensor.side_elements;
    bytes += tensor.side_bytes;
  }
  if (n_matrices == 0) return;
  Difference difference;
  difference.level = DifferenceLevel::note;
  difference.kind = "quantization_scales";
  difference.count = n_matrices;
  difference.found = std::to_string(bytes);
  difference.message =
      (n_matrices == 1 ? std::string("1 quantized matrix has scales and tables beside it: ")
                       : grouped_digits(n_matrices) +
                             " quantized matrices have scales and tables beside "
                             "them: ") +
      grouped_digits(elements) + " elements, " + grouped_digits(static_cast<Index>(bytes)) +
      " bytes, not counted as parameters";
  list.add(std::move(difference));
}

// Floating parameters stored otherwise than config.json says; quantized ones speak for themselves.
void note_dtypes(const Architecture& architecture, const std::vector<LogicalTensor>& tensors,
                 DifferenceList& list) {
  if (!architecture.dtype) return;
  struct Sum {
    Index n_tensors = 0;
    Index parameters = 0;
  };
  std::map<Dtype, Sum> sums;
  for (const LogicalTensor& tensor : tensors) {
    if (tensor.kind != TensorKind::parameter || tensor.is_quantized) continue;
    if (!is_floating(tensor.dtype) || tensor.dtype == *architecture.dtype) continue;
    ++sums[tensor.dtype].n_tensors;
    sums[tensor.dtype].parameters += tensor.parameters;
  }
  for (const auto& [dtype, sum] : sums) {
    Difference difference;
    difference.level = DifferenceLevel::note;
    difference.kind = "dtype_differs";
    difference.expected = std::string(to_string(*architecture.dtype));
    difference.found = std::string(to_string(dtype));
    difference.count = sum.n_tensors;
    difference.message = count_of(sum.n_tensors, "tensor") + " of " +
                         count_of(sum.parameters, "parameter") +
                         (sum.n_tensors == 1 ? " is " : " are ") + difference.found +
                         ", but config.json says " + difference.expected;
    list.add(std::move(difference));
  }
}

}  // namespace

std::vector<Difference> cross_check(const CrossCheckInput& given) {
  CrossCheckInput input = given;
  SpecMatches made;
  if (input.matches == nullptr && input.architecture != nullptr && input.tensors != nullptr) {
    made = match_specs(*input.architecture, *input.tensors);
    input.matches = &made;
  }
  DifferenceList list;
  detail::compare_index(input, list);
  if (input.tensors == nullptr) return list.finish();
  if (input.architecture != nullptr) detail::compare_table(input, list);
  note_buffers(*input.tensors, list);
  note_scales(*input.tensors, list);
  if (input.architecture != nullptr) note_dtypes(*input.architecture, *input.tensors, list);
  return list.finish();
}

std::string_view to_string(DifferenceLevel level) {
  switch (level) {
    case DifferenceLevel::error:
      return "error";
    case DifferenceLevel::warning:
      return "warning";
    case DifferenceLevel::note:
      return "note";
  }
  return "";
}

}  // namespace eckart
