// A model of principal components as a file: an .npz that NumPy reads too.
#pragma once

#include "eckart/linalg/pca.h"

#include <string>
#include <string_view>

namespace eckart::cli {

/// Throws ArgumentError unless the path ends in .npz: to be called before the work is done.
void check_model_output(const std::string& path, std::string_view operation);
/// Writes the model and the scores of its training set's rows (n x 2 or n x 1, for a plot).
template <class T>
void save_pca(const std::string& path, const Pca<T>& model, const Tensor<T>& scores);

/// Whether an argument is such a file, and not an array.
bool is_pca_model(const std::string& argument);
/// Throws FileError or FormatError when it can't be read, ArgumentError when it is no such model.
template <class T>
Pca<T> load_pca(const std::string& path);
/// The scores that were stored beside the model.
Tensor<double> load_pca_scores(const std::string& path);

}  // namespace eckart::cli
