#include "eckart/model/stored_matrix.h"

#include "eckart/blas/gemm.h"
#include "eckart/blas/row_products.h"
#include "eckart/blas/threads.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/io/widen.h"
#include "eckart/model/stored_rows_simd.h"
#include "eckart/model/weights.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace eckart {
namespace {

// Up to so many tokens each row of the matrix is multiplied where it lies: memory bounds the speed.
constexpr Index few_tokens = 4;
// Floats of a widened block: 1 MiB, which a core's second cache holds.
constexpr Index block_floats = Index{1} << 18;
// Rows of a block and tokens of a piece: BLAS packs both once a piece.
constexpr Index largest_block = 512;
constexpr Index piece_tokens = 256;
// Pieces that a product is cut into at least, so that every thread has some.
constexpr Index least_pieces = 8;
// Multiplications below which waking threads costs more than they save.
constexpr Index least_parallel = Index{1} << 17;
// Columns of a sum that stays in the first cache while rows are added to it.
constexpr Index sum_columns = 1024;

Index divided_up(Index a, Index b) { return (a + b - 1) / b; }

const std::uint8_t* at_row(const StoredMatrix& w, Index row) {
  return reinterpret_cast<const std::uint8_t*>(w.row_bytes(row));
}

bool is_multiplied_in_place(const StoredMatrix& w) {
  return !w.has_scales() && (w.dtype() == Dtype::f32 || w.dtype() == Dtype::bf16);
}

// The matrix as floats in the file, where it is that.
const float* floats_of(const StoredMatrix& w) {
  if (w.has_scales() || w.dtype() != Dtype::f32) return nullptr;
  const std::byte* const bytes = w.row_bytes(0);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(bytes) % alignof(float) == 0;
  return is_aligned ? reinterpret_cast<const float*>(bytes) : nullptr;
}

// Stored rows are outputs: each is a dot product with every token.
void few_by_rows(TensorView<const float> x, const StoredMatrix& w, Tensor<float>& y) {
  const Index d_in = w.n_inputs(), n_tokens = x.size(0), d_out = w.n_outputs();
  const Index grain = std::max<Index>(1, least_parallel / std::max<Index>(1, d_in * n_tokens));
  const auto n = static_cast<std::size_t>(d_in);
  const bool in_place = is_multiplied_in_place(w);
  const auto dot = w.dtype() == Dtype::bf16 && in_place ? detail::dot_bf16 : detail::dot_f32;
  parallel_for(d_out, grain, [&](Index begin, Index end) {
    std::vector<float> row(in_place ? 0 : n);
    for (Index o = begin; o < end; ++o) {
      if (!in_place) w.widen_rows(o, 1, row);
      const std::uint8_t* const at =
          in_place ? at_row(w, o) : reinterpret_cast<const std::uint8_t*>(row.data());
      for (Index t = 0; t < n_tokens; ++t) y(t, o) = dot(at, x.data() + t * d_in, n);
    }
  });
}

// Stored rows are inputs: the sum of them, each times its input.
void few_by_columns(TensorView<const float> x, const StoredMatrix& w, Tensor<float>& y) {
  const Index d_in = w.n_inputs(), n_tokens = x.size(0), d_out = w.n_outputs();
  const bool in_place = is_multiplied_in_place(w);
  const auto add =
      w.dtype() == Dtype::bf16 && in_place ? detail::add_scaled_bf16 : detail::add_scaled_f32;
  const std::size_t bytes = in_place ? static_cast<std::size_t>(bits(w.dtype()) / 8) : 4;
  std::fill_n(y.data(), y.count(), 0.0F);
  // A format that is widened first is widened whole rows at a time, by one thread.
  const Index columns = in_place ? std::min(sum_columns, divided_up(d_out, least_pieces)) : d_out;
  const bool is_small = d_in * d_out * n_tokens < least_parallel;
  parallel_for(d_out, is_small ? d_out : columns, [&](Index begin, Index end) {
    std::vector<float> row(in_place ? 0 : static_cast<std::size_t>(d_out));
    for (Index i = 0; i < d_in; ++i) {
      if (!in_place) w.widen_rows(i, 1, row);
      const std::uint8_t* const at =
          in_place ? at_row(w, i) : reinterpret_cast<const std::uint8_t*>(row.data());
      for (Index t = 0; t < n_tokens; ++t) {
        add(at + static_cast<std::size_t>(begin) * bytes, x(t, i), &y(t, begin),
            static_cast<std::size_t>(end - begin));
      }
    }
  });
}

// Stored rows are outputs: blocks of them against blocks of tokens.
void many_by_rows(TensorView<const float> x, const StoredMatrix& w, Tensor<float>& y) {
  const Index d_in = w.n_inputs(), n_tokens = x.size(0), d_out = w.n_outputs();
  const float* const floats = floats_of(w);
  const Index token_blocks = divided_up(n_tokens, piece_tokens);
  const Index room = std::max<Index>(1, block_floats / std::max<Index>(1, d_in));
  const Index even = divided_up(d_out, divided_up(least_pieces, token_blocks));
  const Index rows =
      std::max<Index>(std::min({floats == nullptr ? room : largest_block, largest_block, even}), 1);
  const Index row_blocks = divided_up(d_out, rows);
  const Index pieces = row_blocks * token_blocks;
  const bool is_small = d_in * d_out * n_tokens < least_parallel;
  blas::with_own_threads([&] {
    parallel_for(pieces, is_small ? std::max<Index>(pieces, 1) : 1, [&](Index begin, Index end) {
      std::vector<float> block(floats == nullptr ? static_cast<std::size_t>(rows * d_in) : 0);
      for (Index piece = begin; piece < end; ++piece) {
        const Index first = piece / token_blocks * rows;
        const Index n = std::min(rows, d_out - first);
        const Index token = piece % token_blocks * piece_tokens;
        if (floats == nullptr) {
          w.widen_rows(first, n, std::span(block).first(static_cast<std::size_t>(n * d_in)));
        }
        blas::multiply_rows<float>({.m = std::min(piece_tokens, n_tokens - token),
                                    .n = n,
                                    .k = d_in,
                                    .a = x.data() + token * d_in,
                                    .lda = d_in,
                                    .b = floats == nullptr ? block.data() : floats + first * d_in,
                                    .ldb = d_in,
                                    .c = y.data() + token * d_out + first,
                                    .ldc = d_out});
      }
    });
  });
}

// Stored rows are inputs: the products of blocks of them are added.
void many_by_columns(TensorView<const float> x, const StoredMatrix& w, Tensor<float>& y) {
  const Index d_in = w.n_inputs(), d_out = w.n_outputs();
  if (const float* const floats = floats_of(w)) {
    blas::gemm<float>(1, x, TensorView<const float>(floats, {d_in, d_out}), 0, y);
    return;
  }
  // All threads work on one block, which may so be larger than a core's cache.
  const Index rows =
      std::clamp<Index>(8 * block_floats / std::max<Index>(1, d_out), 1, std::max<Index>(d_in, 1));
  Tensor<float> block = Tensor<float>::uninitialized({std::min(rows, d_in), d_out});
  for (Index first = 0; first < d_in; first += rows) {
    const Index n = std::min(rows, d_in - first);
    w.widen_rows(first, n, std::span(block.data(), static_cast<std::size_t>(n * d_out)));
    blas::gemm<float>(1, x.slice(1, {first, first + n}),
                      TensorView<const float>(block.data(), {n, d_out}), first == 0 ? 0.0F : 1.0F,
                      y);
  }
}

}  // namespace

StoredMatrix::StoredMatrix(std::shared_ptr<const Checkpoint> checkpoint,
                           const LogicalTensor& tensor, bool input_first)
    : checkpoint_(std::move(checkpoint)), tensor_(tensor), input_first_(input_first) {
  if (tensor.shape.rank() != 2) {
    throw_argument_error("stored matrix: " + printable(tensor.name) + " is " +
                         sizes_to_string(tensor.shape) + ", but must be a matrix");
  }
  if (const std::string why = why_unreadable(tensor); !why.empty()) {
    throw_argument_error("stored matrix: " + printable(tensor.name) + " can't be read: " + why);
  }
  bytes_ = checkpoint_->bytes(checkpoint_->tensors()[tensor.values].stored->name);
}

const std::byte* StoredMatrix::row_bytes(Index row) const {
  const auto element = static_cast<Index>(bits(tensor_.dtype) / 8);
  return bytes_.data() + row * tensor_.shape.size(1) * element;
}

void StoredMatrix::widen_rows(Index first, Index n, std::span<float> out) const {
  if (has_scales()) {
    const Tensor<float> rows = load_weight_rows(*checkpoint_, tensor_, first, n);
    std::copy_n(rows.data(), rows.count(), out.data());
    return;
  }
  const Index row = tensor_.shape.size(1) * (bits(tensor_.dtype) / 8);
  widen<float>(
      tensor_.dtype,
      bytes_.subspan(static_cast<std::size_t>(first * row), static_cast<std::size_t>(n * row)),
      out);
}

Tensor<float> linear(TensorView<const float> x, const StoredMatrix& w) {
  if (x.rank() != 2 || x.size(1) != w.n_inputs()) {
    throw_shape_error("linear: x is " + to_string(x.shape()) + ", but " + printable(w.name()) +
                      " takes " + std::to_string(w.n_inputs()) + " columns");
  }
  if (!x.is_row_major()) return linear(Tensor<float>(x).view(), w);
  Tensor<float> y = Tensor<float>::uninitialized({x.size(0), w.n_outputs()});
  if (x.size(0) <= few_tokens) {
    w.input_first() ? few_by_columns(x, w, y) : few_by_rows(x, w, y);
  } else {
    w.input_first() ? many_by_columns(x, w, y) : many_by_rows(x, w, y);
  }
  return y;
}

Tensor<float> gather_rows(const StoredMatrix& table, const std::vector<Index>& ids) {
  const Index n_rows = table.n_outputs(), columns = table.n_inputs();
  Tensor<float> rows = Tensor<float>::uninitialized({static_cast<Index>(ids.size()), columns});
  float* out = rows.data();
  for (const Index id : ids) {
    if (id < 0 || id >= n_rows) {
      throw_argument_error("gather_rows: row " + std::to_string(id) + " of " +
                           printable(table.name()) + ", but it has " + std::to_string(n_rows) +
                           " rows");
    }
    table.widen_rows(id, 1, std::span(out, static_cast<std::size_t>(columns)));
    out += columns;
  }
  return rows;
}

}  // namespace eckart
