#include "eckart/lora/decomposition.h"

#include "eckart/core/errors.h"
#include "eckart/io/findings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

// A difference of more elements than this is read anew in every product: 256 MiB of floats.
constexpr Index most_held = Index{1} << 26;

Tensor<float> transposed(const Tensor<float>& matrix) {
  return Tensor<float>(matrix.view().transpose());
}

// The matrix with zeros behind its columns (of b) or below its rows (of a).
Tensor<float> with_columns(Tensor<float> b, Index columns) {
  if (b.size(1) == columns) return b;
  Tensor<float> result({b.size(0), columns});
  const Index kept = std::min(columns, b.size(1));
  for (Index i = 0; i < b.size(0); ++i) {
    for (Index j = 0; j < kept; ++j) result(i, j) = b(i, j);
  }
  return result;
}

Tensor<float> with_rows(Tensor<float> a, Index rows) {
  if (a.size(0) == rows) return a;
  Tensor<float> result({rows, a.size(1)});
  std::copy_n(a.data(), std::min(rows, a.size(0)) * a.size(1), result.data());
  return result;
}

void append(const Tensor<float>& tensor, std::vector<std::byte>& bytes) {
  const std::size_t begin = bytes.size();
  const std::size_t size = static_cast<std::size_t>(tensor.count()) * sizeof(float);
  bytes.resize(begin + size);
  if (size > 0) std::memcpy(bytes.data() + begin, tensor.data(), size);
}

Tensor<float> take(std::span<const std::byte>& bytes, Index rows, Index columns) {
  Tensor<float> result = Tensor<float>::uninitialized({rows, columns});
  const std::size_t size = static_cast<std::size_t>(result.count()) * sizeof(float);
  if (size > 0) std::memcpy(result.data(), bytes.first(size).data(), size);
  bytes = bytes.subspan(size);
  return result;
}

}  // namespace

TensorMatrices::TensorMatrices(const PlannedExtract& tensor) : tensor_(tensor) {
  if (tensor.kind == AdapterKind::experts) {
    count_ = tensor.shape.size(0);
    rows_ = tensor.shape.size(1);
    columns_ = tensor.shape.size(2);
  } else {
    rows_ = tensor.pair.rows();
    columns_ = tensor.pair.columns();
  }
}

Index TensorMatrices::cost() const {
  return count_ * (rows_ + columns_) * (tensor_.tied_module.empty() ? 1 : 2);
}

const LinearOperator<float>& TensorMatrices::at(Index i) {
  if (held_ == i) return *operator_;
  operator_.reset();
  held_ = i;
  if (tensor_.kind == AdapterKind::experts) {
    matrix_ = load_difference(tensor_.pair, i, 1).reshaped({rows_, columns_});
  } else if (rows_ * columns_ > most_held) {
    operator_ = std::make_unique<DifferenceReader>(tensor_.pair);
    return *operator_;
  } else {
    matrix_ = load_difference(tensor_.pair, 0, rows_);
  }
  operator_ = std::make_unique<MatrixOperator<float>>(
      TensorView<const float>(std::as_const(matrix_).view()));
  return *operator_;
}

namespace {

LowRank<float> low_rank_of(TensorMatrices& matrices, Index i, const LowRankOptions& options) {
  try {
    return low_rank(matrices.at(i), options);
  } catch (const ArgumentError&) {
    if (std::isfinite(matrices.at(i).frobenius_norm())) throw;
    throw_argument_error("extract: the difference of " + printable(matrices.name()) +
                             " has numbers that are infinite or NaN in F32",
                         "`eckart diff` shows which entries are too far apart");
  }
}

}  // namespace

Decomposition decompose(TensorMatrices& matrices, const LowRankOptions& options) {
  Decomposition result;
  for (Index i = 0; i < matrices.count(); ++i) {
    const LowRank<float> found = low_rank_of(matrices, i, options);
    LowRankFactors<float> pair = factors(found);
    result.norm = std::hypot(result.norm, found.frobenius_norm);
    result.error = std::hypot(result.error, found.frobenius_error);
    if (found.rank > 0 || result.method.empty()) result.method = found.method;
    for (Index k = 0; k < found.rank; ++k) {
      const double s = static_cast<double>(found.s(k));
      if (k == result.rank()) result.energies.push_back(0);
      result.energies[static_cast<std::size_t>(k)] += s * s;
    }
    result.b.push_back(std::move(pair.b));
    result.a.push_back(std::move(pair.a));
  }
  for (Tensor<float>& b : result.b) b = with_columns(std::move(b), result.rank());
  for (Tensor<float>& a : result.a) a = with_rows(std::move(a), result.rank());
  return result;
}

void cut(Decomposition& found, Index rank) {
  if (rank >= found.rank()) return;
  double squared = found.error * found.error;
  for (Index k = found.rank(); k-- > rank;) squared += found.energies[static_cast<std::size_t>(k)];
  found.error = std::min(std::sqrt(squared), found.norm);
  found.energies.resize(static_cast<std::size_t>(rank));
  for (Tensor<float>& b : found.b) b = with_columns(std::move(b), rank);
  for (Tensor<float>& a : found.a) a = with_rows(std::move(a), rank);
}

Index rank_for(const Decomposition& found, double squared_share) {
  double rest = found.error * found.error;
  Index rank = found.rank();
  while (rank > 0) {
    const double without = rest + found.energies[static_cast<std::size_t>(rank - 1)];
    if (without > squared_share * found.norm * found.norm) break;
    rest = without;
    --rank;
  }
  return rank;
}

std::vector<std::byte> factor_bytes(const Decomposition& found) {
  std::vector<std::byte> bytes;
  for (const Tensor<float>& b : found.b) append(b, bytes);
  for (const Tensor<float>& a : found.a) append(a, bytes);
  return bytes;
}

std::string describe(const Decomposition& found) {
  const nlohmann::json note = {{"energies", found.energies},
                               {"norm", found.norm},
                               {"error", found.error},
                               {"method", found.method}};
  return note.dump();
}

Decomposition read_decomposition(const std::string& note, std::span<const std::byte> bytes,
                                 const TensorMatrices& matrices) {
  const nlohmann::json read = nlohmann::json::parse(note);
  Decomposition found;
  found.energies = read.at("energies").get<std::vector<double>>();
  found.norm = read.at("norm").get<double>();
  found.error = read.at("error").get<double>();
  found.method = read.at("method").get<std::string>();
  for (Index i = 0; i < matrices.count(); ++i) {
    found.b.push_back(take(bytes, matrices.rows(), found.rank()));
  }
  for (Index i = 0; i < matrices.count(); ++i) {
    found.a.push_back(take(bytes, found.rank(), matrices.columns()));
  }
  return found;
}

NewModule module_of(const PlannedExtract& tensor, Decomposition found, Index rank) {
  NewModule module;
  module.name = tensor.kind == AdapterKind::experts ? tensor.name : tensor.module;
  module.kind = tensor.kind;
  for (std::size_t i = 0; i < found.b.size(); ++i) {
    Tensor<float> b = with_columns(std::move(found.b[i]), rank);
    Tensor<float> a = with_rows(std::move(found.a[i]), rank);
    if (tensor.is_input_first) {
      Tensor<float> turned = transposed(a);
      a = transposed(b);
      b = std::move(turned);
    }
    module.b.push_back(std::move(b));
    module.a.push_back(std::move(a));
  }
  if (tensor.kind == AdapterKind::convolution) {
    for (Index axis = 2; axis < tensor.shape.rank(); ++axis) {
      module.kernel.push_back(tensor.shape.size(axis));
    }
  }
  return module;
}

double distance(TensorMatrices& matrices, const PlannedExtract& tensor, const NewModule& module) {
  double result = 0;
  for (Index i = 0; i < matrices.count(); ++i) {
    const TensorView<const float> b = module.b[static_cast<std::size_t>(i)].view();
    const TensorView<const float> a = module.a[static_cast<std::size_t>(i)].view();
    const LinearOperator<float>& difference = matrices.at(i);
    result =
        std::hypot(result, tensor.is_input_first ? difference.distance(a.transpose(), b.transpose())
                                                 : difference.distance(b, a));
  }
  return result;
}

}  // namespace eckart
