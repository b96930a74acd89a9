// A model of principal components as a file: an .npz that NumPy reads too.
#pragma once

#include "eckart/io/npz_write.h"
#include "eckart/linalg/pca.h"

#include <optional>
#include <string>
#include <string_view>

namespace eckart::cli {

/// The file that a model is written to, opened before the work; nothing for an empty path. Throws
/// UsageError unless the path ends in .npz, FileError when it can't be written.
std::optional<NpzWriter> open_model_output(const std::string& path, std::string_view operation);
/// Writes the model and the scores of its training set's rows (n x 2 or n x 1, for a plot), and puts
/// the file in its place.
template <class T>
void save_pca(NpzWriter& writer, const Pca<T>& model, const Tensor<T>& scores);

/// Whether an argument is such a file, and not an array.
bool is_pca_model(const std::string& argument);
/// Throws ArgumentError unless the path ends in .npz, as where the model and the array are given in the
/// wrong order: the reader of archives would speak of zip files.
void check_model_path(const std::string& path);
/// Throws FileError or FormatError when it can't be read, ArgumentError when it is no such model.
template <class T>
Pca<T> load_pca(const std::string& path);
/// The scores that were stored beside the model.
Tensor<double> load_pca_scores(const std::string& path);

}  // namespace eckart::cli
