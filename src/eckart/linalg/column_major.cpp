#include "eckart/linalg/column_major.h"

#include "eckart/core/parallel.h"

#include <algorithm>

namespace eckart {

template <class T>
Tensor<T> transposed_copy(TensorView<const T> a) {
  const TensorView<const T> from = a.transpose();
  if (from.is_row_major()) return Tensor<T>(from);
  constexpr Index block = 32;  // 32 x 32 doubles are 8 KB: both sides of the copy fit a 32 KB cache
  Tensor<T> copy = Tensor<T>::uninitialized(from.shape());
  const Index rows = from.size(0);
  const Index columns = from.size(1);
  if (copy.count() == 0) return copy;
  const Index row_stride = from.strides()[0];
  const Index column_stride = from.strides()[1];
  parallel_for((rows + block - 1) / block, std::max<Index>(1, 4096 / std::max<Index>(columns, 1)),
               [&](Index begin, Index end) {
                 for (Index left = 0; left < columns; left += block) {
                   for (Index row = begin * block; row < std::min(end * block, rows); ++row) {
                     const T* const source = from.data() + row * row_stride;
                     T* const to = copy.data() + row * columns;
                     for (Index column = left; column < std::min(left + block, columns); ++column) {
                       to[column] = source[column * column_stride];
                     }
                   }
                 }
               });
  return copy;
}

template Tensor<float> transposed_copy(TensorView<const float>);
template Tensor<double> transposed_copy(TensorView<const double>);

}  // namespace eckart
