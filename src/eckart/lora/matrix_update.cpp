#include "eckart/lora/matrix_update.h"

#include "eckart/blas/row_products.h"
#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/io/widen.h"
#include "eckart/lora/row_blocks.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace eckart {
namespace {

std::span<const std::byte> elements_of(std::span<const std::byte> bytes, Dtype dtype, Index first,
                                       Index n) {
  const auto element = static_cast<std::size_t>(bits(dtype)) / 8;
  return bytes.subspan(static_cast<std::size_t>(first) * element,
                       static_cast<std::size_t>(n) * element);
}

// Values behind scales come a slice of the first axis at a time.
template <class T>
void read_scaled(const MergeSources& sources, const PlannedTensor& tensor, Index first, Index n,
                 T* out) {
  const Index slice = tensor.shape.rank() < 2 ? 1 : tensor.shape.count() / tensor.shape.size(0);
  const Index begin = first / slice;
  const Index end = (first + n + slice - 1) / slice;
  const Tensor<float> read = load_weight_rows(sources.base, *tensor.base, begin, end - begin);
  const float* const from = read.data() + (first - begin * slice);
  std::copy(from, from + n, out);
}

// The row vectors of a module's factors in the tensor's own orientation.
struct Pair {
  Tensor<float> left;     // rows x rank
  Tensor<float> right_t;  // columns x rank
  double scale = 1;
};

// `rows`: of the tensor's matrices.
Pair pair_of(const MergeSources& sources, const PlannedDelta& delta, Index matrix, Index rows) {
  const Adapter& adapter = sources.adapters[delta.adapter];
  const AdapterModule& module = *delta.module;
  if (delta.is_bias) {
    const StoredTensor& bias = *module.bias;
    Tensor<float> values = Tensor<float>::uninitialized({bias.shape.count(), 1});
    widen<float>(bias.dtype, adapter.file().bytes(bias),
                 {values.data(), static_cast<std::size_t>(values.count())});
    return {Tensor<float>({1, 1}, 1.0f), std::move(values), module.scale * delta.weight};
  }
  AdapterFactors factors = load_factors(adapter, module, delta.expert.value_or(matrix));
  Tensor<float> a_t(factors.a.view().transpose());
  Pair pair{std::move(factors.b), std::move(a_t), factors.scale * delta.weight};
  if (delta.is_transposed) std::swap(pair.left, pair.right_t);
  if (delta.expert) {
    pair.left = Tensor<float>(pair.left.view().slice(0, {delta.first_row, delta.first_row + rows}));
  }
  return pair;
}

}  // namespace

template <class T>
void read_rows(const MergeSources& sources, const PlannedTensor& tensor, const RowRange& range,
               T* out) {
  const Index first = (range.matrix * tensor.rows + range.first) * tensor.columns;
  const Index n = range.n * tensor.columns;
  if (tensor.saved == nullptr && tensor.base->is_quantized) {
    return read_scaled(sources, tensor, first, n, out);
  }
  const StoredTensor& stored = tensor.saved != nullptr ? *tensor.saved : *tensor.stored;
  const std::span<const std::byte> bytes =
      tensor.saved != nullptr ? sources.adapters[tensor.saved_by].file().bytes(stored)
                              : sources.base.shards()[tensor.shard].bytes(stored);
  widen<T>(stored.dtype, elements_of(bytes, stored.dtype, first, n),
           {out, static_cast<std::size_t>(n)});
}

template <class T>
MatrixUpdate<T>::MatrixUpdate(const MergeSources& sources, const PlannedTensor& tensor)
    : columns_(tensor.columns) {
  if (tensor.deltas.empty()) return;
  add_factors(sources, tensor);
  const PlannedDelta& first = tensor.deltas.front();
  if (!first.is_bias && first.module->magnitude != nullptr) load_magnitudes(sources, tensor);
}

template <class T>
void MatrixUpdate<T>::add_factors(const MergeSources& sources, const PlannedTensor& tensor) {
  for (Index matrix = 0; matrix < tensor.n_matrices; ++matrix) {
    std::vector<Pair> pairs;
    Index rank = 0;
    for (const PlannedDelta& delta : tensor.deltas) {
      pairs.push_back(pair_of(sources, delta, matrix, tensor.rows));
      rank += pairs.back().left.size(1);
    }
    Factors all{Tensor<T>::uninitialized({tensor.rows, rank}),
                Tensor<T>::uninitialized({tensor.columns, rank})};
    Index at = 0;
    for (const Pair& pair : pairs) {
      const Index r = pair.left.size(1);
      for (Index row = 0; row < tensor.rows; ++row) {
        for (Index k = 0; k < r; ++k) {
          all.left(row, at + k) =
              static_cast<T>(static_cast<double>(pair.left(row, k)) * pair.scale);
        }
      }
      for (Index column = 0; column < tensor.columns; ++column) {
        for (Index k = 0; k < r; ++k) {
          all.right_t(column, at + k) = static_cast<T>(pair.right_t(column, k));
        }
      }
      at += r;
    }
    factors_.push_back(std::move(all));
  }
}

// Of each output's weights, delta included: in double, over pieces of rows that depend on the sizes
// alone, so that the number of threads changes nothing.
template <class T>
std::vector<double> MatrixUpdate<T>::output_squares(const MergeSources& sources,
                                                    const PlannedTensor& tensor) const {
  constexpr Index max_pieces = 64;
  const auto n_outputs = static_cast<std::size_t>(is_dora_by_column_ ? columns_ : tensor.rows);
  const Index block = rows_per_block(columns_);
  const Index n_blocks = (tensor.rows + block - 1) / block;
  const Index piece = (n_blocks + max_pieces - 1) / max_pieces * block;
  const Index n_pieces = piece == 0 ? 0 : (tensor.rows + piece - 1) / piece;
  std::vector<std::vector<double>> pieces(static_cast<std::size_t>(n_pieces));
  parallel_for(n_pieces, 1, [&](Index begin, Index end) {
    std::vector<T> base(static_cast<std::size_t>(block * columns_)), wanted(base), change(base);
    for (Index i = begin; i < end; ++i) {
      std::vector<double>& squares = pieces[static_cast<std::size_t>(i)];
      squares.resize(n_outputs);
      const Index last = std::min((i + 1) * piece, tensor.rows);
      for (Index first = i * piece; first < last; first += block) {
        const RowRange range{0, first, std::min(block, last - first)};
        read_rows(sources, tensor, range, base.data());
        apply(range, base.data(), wanted.data(), change.data());
        const T* x = wanted.data();
        for (Index row = first; row < first + range.n; ++row) {
          for (Index column = 0; column < columns_; ++column, ++x) {
            const auto output = static_cast<std::size_t>(is_dora_by_column_ ? column : row);
            squares[output] += static_cast<double>(*x) * static_cast<double>(*x);
          }
        }
      }
    }
  });
  std::vector<double> all(n_outputs);
  for (const std::vector<double>& squares : pieces) {
    for (std::size_t i = 0; i < n_outputs; ++i) all[i] += squares[i];
  }
  return all;
}

// PEFT's DoRA: an output's weights, delta included, are scaled to the magnitude m.
template <class T>
void MatrixUpdate<T>::load_magnitudes(const MergeSources& sources, const PlannedTensor& tensor) {
  const PlannedDelta& delta = tensor.deltas.front();
  const StoredTensor& stored = *delta.module->magnitude;
  const Adapter& adapter = sources.adapters[delta.adapter];
  is_dora_by_column_ = delta.is_transposed;
  const std::vector<double> squares = output_squares(sources, tensor);
  std::vector<T> magnitudes(squares.size());
  widen<T>(stored.dtype, adapter.file().bytes(stored), magnitudes);
  dora_.resize(squares.size());
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (squares[i] == 0) {
      throw_argument_error("merge: " + std::string(is_dora_by_column_ ? "column " : "row ") +
                               std::to_string(i) + " of " + printable(tensor.name) +
                               ", base and delta, is 0, but DoRA divides by its norm",
                           "PEFT makes NaN of it");
    }
    dora_[i] = static_cast<T>(static_cast<double>(magnitudes[i]) / std::sqrt(squares[i]));
  }
}

template <class T>
void MatrixUpdate<T>::multiply(const RowRange& range, T* delta) const {
  const Factors& factors = factors_[static_cast<std::size_t>(range.matrix)];
  const Index rank = factors.left.size(1);
  blas::with_own_threads([&] {
    blas::multiply_rows<T>({range.n, columns_, rank, factors.left.data() + range.first * rank, rank,
                            factors.right_t.data(), rank, delta, columns_});
  });
}

template <class T>
void MatrixUpdate<T>::apply(const RowRange& range, const T* base, T* wanted, T* delta) const {
  multiply(range, delta);
  const Index n = range.n * columns_;
  for (Index i = 0; i < n; ++i) wanted[i] = base[i] + delta[i];
  if (dora_.empty()) return;
  for (Index row = 0; row < range.n; ++row) {
    for (Index column = 0; column < columns_; ++column) {
      const Index i = row * columns_ + column;
      wanted[i] *= dora_[static_cast<std::size_t>(is_dora_by_column_ ? column : range.first + row)];
      delta[i] = wanted[i] - base[i];
    }
  }
}

template <class T>
std::vector<double> MatrixUpdate<T>::magnitudes(Index matrix) const {
  const Factors& factors = factors_[static_cast<std::size_t>(matrix)];
  const Index rank = factors.left.size(1);
  std::vector<double> largest(static_cast<std::size_t>(rank));
  for (Index column = 0; column < columns_; ++column) {
    for (Index k = 0; k < rank; ++k) {
      double& one = largest[static_cast<std::size_t>(k)];
      one = std::max(one, std::abs(static_cast<double>(factors.right_t(column, k))));
    }
  }
  std::vector<double> sums(static_cast<std::size_t>(factors.left.size(0)));
  for (Index row = 0; row < factors.left.size(0); ++row) {
    for (Index k = 0; k < rank; ++k) {
      sums[static_cast<std::size_t>(row)] += std::abs(static_cast<double>(factors.left(row, k))) *
                                             largest[static_cast<std::size_t>(k)];
    }
  }
  return sums;
}

template <class T>
double MatrixUpdate<T>::largest_dora() const {
  double largest = 1;
  for (const T factor : dora_) largest = std::max(largest, std::abs(static_cast<double>(factor)));
  return largest;
}

template void read_rows(const MergeSources&, const PlannedTensor&, const RowRange&, float*);
template void read_rows(const MergeSources&, const PlannedTensor&, const RowRange&, double*);
template class MatrixUpdate<float>;
template class MatrixUpdate<double>;

}  // namespace eckart
