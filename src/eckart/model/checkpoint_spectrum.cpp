#include "eckart/model/checkpoint_spectrum.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"
#include "eckart/model/name_pattern.h"

#include <algorithm>
#include <utility>

namespace eckart {
namespace {

template <class T>
Spectrum spectrum_of(const Checkpoint& checkpoint, const LogicalMatrix& matrix,
                     const SpectrumOptions& options) {
  const Tensor<T> stored = load_matrix<T>(checkpoint, matrix);
  const TensorView<const T> view = stored.view();
  Spectrum result = spectrum(matrix.is_input_first ? view.transpose() : view, options);
  result.shape = matrix.shape;
  result.statistics.shape = matrix.shape;
  return result;
}

[[noreturn]] void fail_to_match(const std::string& pattern, const LogicalMatrices& all,
                                const std::vector<LeftOut>& left_out) {
  const std::string shown = "'" + printable(pattern) + "'";
  if (!left_out.empty()) {
    throw_argument_error("spectrum: " + shown + " fits no matrix, but " +
                         printable(left_out.front().name) + ": " +
                         printable(left_out.front().reason));
  }
  if (all.matrices.empty()) throw_argument_error("spectrum: the checkpoint holds no matrix");
  throw_argument_error("spectrum: " + shown + " fits no matrix of the checkpoint",
                       "* stands for any letters: '*" + printable(pattern) +
                           "*'; the first matrix is " + printable(all.matrices.front().name));
}

}  // namespace

CheckpointSpectrum checkpoint_spectrum(const Checkpoint& checkpoint,
                                       const std::vector<LogicalTensor>& tensors,
                                       const Architecture* architecture,
                                       const CheckpointSpectrumOptions& options) {
  const LogicalMatrices all = logical_matrices(checkpoint, tensors, architecture);
  CheckpointSpectrum result;
  Index elements = 0;
  for (const LogicalMatrix& matrix : all.matrices) {
    if (!matches_pattern(matrix.name, options.pattern) &&
        !matches_pattern(matrix.tensor, options.pattern)) {
      continue;
    }
    elements += matrix.shape.count();
    result.matrices.push_back({matrix, {}});
  }
  for (const LeftOut& one : all.left_out) {
    if (matches_pattern(one.name, options.pattern)) result.left_out.push_back(one);
  }
  // Where matrices are there but can't be read, that is the answer.
  const bool has_unread = std::any_of(result.left_out.begin(), result.left_out.end(),
                                      [](const LeftOut& one) { return one.is_matrix; });
  if (result.matrices.empty() && !has_unread) {
    fail_to_match(options.pattern, all, result.left_out);
  }
  for (MatrixSpectrum& one : result.matrices) {
    one.spectrum = one.matrix.dtype == Dtype::f64
                       ? spectrum_of<double>(checkpoint, one.matrix, options.spectrum)
                       : spectrum_of<float>(checkpoint, one.matrix, options.spectrum);
    if (options.on_progress) options.on_progress(one.matrix.shape.count(), elements);
  }
  return result;
}

}  // namespace eckart
