#include "eckart/nn/attention_simd.h"
#include "eckart/nn/bf16.h"
#include "eckart/nn/kv_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart::detail {
namespace {

constexpr Index least_capacity = 64;

// Rows [first, first + count) of each head of one array to the front of another's.
template <class U>
struct RowMove {
  const U* from;
  U* to;
  Index n_heads, width;
  Index from_capacity, to_capacity;
  Index first, count;

  void run() const {
    for (Index head = 0; head < n_heads; ++head) {
      const U* const source = from + (head * from_capacity + first) * width;
      // Towards the front, so that an overlap of the same array is copied in order.
      std::copy(source, source + count * width, to + head * to_capacity * width);
    }
  }
};

template <class U>
void copy_row(const U* from, Index stride, Index n, U* to) {
  for (Index i = 0; i < n; ++i) to[i] = from[i * stride];
}
template <class T>
void copy_row(const T* from, Index stride, Index n, std::uint16_t* to) {
  for (Index i = 0; i < n; ++i) to[i] = to_bf16(from[i * stride]);
}

template <class T, class U>
void copy_rows(TensorView<const T> rows, Index row_width, Index head_stride, U* to) {
  const std::vector<Index>& strides = rows.strides();
  for (Index head = 0; head < rows.size(0); ++head) {
    for (Index token = 0; token < rows.size(1); ++token) {
      copy_row(rows.data() + head * strides[0] + token * strides[1], strides[2], rows.size(2),
               to + head * head_stride + token * row_width);
    }
  }
}

}  // namespace

template <class T>
TokenRows<T>::TokenRows(Index n_heads, Index width, KvPrecision precision)
    : n_heads_(n_heads), width_(width), precision_(precision) {}

template <class T>
void TokenRows<T>::write(TensorView<const T> rows, Index first, Index column) {
  const Index offset = (first_ + first) * width_ + column;
  if (rows.count() == 0) return;
  if (is_rounded()) {
    copy_rows(rows, width_, capacity_ * width_, rounded_.data() + offset);
  } else {
    copy_rows(rows, width_, capacity_ * width_, full_.data() + offset);
  }
}

// Room for so many kept rows behind `first_`. A window's rows wander towards the end and are moved
// to the front when they reach it: at a capacity of one and a half times the window that copies
// each row twice, and the rows of a head always stand one after the other.
template <class T>
void TokenRows<T>::reserve(Index rows) {
  if (first_ + rows <= capacity_) return;
  const Index wanted = rows + rows / 2;
  const bool fits = wanted <= capacity_;
  const Index capacity = fits ? capacity_ : std::max(least_capacity, wanted);
  const auto move = [&](auto& array) {
    using Array = std::remove_reference_t<decltype(array)>;
    if (fits) {
      RowMove<typename Array::value_type>{array.data(), array.data(), n_heads_, width_,
                                          capacity_,    capacity,     first_,   count_}
          .run();
      return;
    }
    Array larger = Array::uninitialized({n_heads_, capacity, width_});
    RowMove<typename Array::value_type>{array.data(), larger.data(), n_heads_, width_,
                                        capacity_,    capacity,      first_,   count_}
        .run();
    array = std::move(larger);
  };
  if (is_rounded()) {
    move(rounded_);
  } else {
    move(full_);
  }
  capacity_ = capacity;
  first_ = 0;
}

template <class T>
void TokenRows<T>::extend(Index n, Index keep) {
  const Index dropped = std::max<Index>(0, count_ - keep);
  first_ += dropped;
  count_ -= dropped;
  reserve(count_ + n);
  count_ += n;
}

template <class T>
Tensor<T> TokenRows<T>::read(Index begin, Index end) const {
  Tensor<T> result = Tensor<T>::uninitialized({n_heads_, count_, end - begin});
  T* to = result.data();
  for (Index head = 0; head < n_heads_; ++head) {
    for (Index row = 0; row < count_; ++row, to += end - begin) {
      const Index offset = (head * capacity_ + first_ + row) * width_ + begin;
      for (Index i = 0; i < end - begin; ++i) {
        to[i] = is_rounded() ? static_cast<T>(from_bf16(rounded_.data()[offset + i]))
                             : full_.data()[offset + i];
      }
    }
  }
  return result;
}

template <class T>
StoredRows TokenRows<T>::stored() const {
  StoredRows rows;
  rows.head_stride = capacity_ * width_;
  rows.row_stride = width_;
  rows.is_bf16 = is_rounded();
  if (is_rounded()) {
    rows.data = rounded_.data() + first_ * width_;
  } else {
    rows.data = full_.data() + first_ * width_;
  }
  return rows;
}

template <class T>
std::uint64_t TokenRows<T>::bytes() const {
  const std::size_t element = is_rounded() ? sizeof(std::uint16_t) : sizeof(T);
  return static_cast<std::uint64_t>(n_heads_ * count_ * width_) * element;
}

template class TokenRows<float>;
template class TokenRows<double>;

}  // namespace eckart::detail
