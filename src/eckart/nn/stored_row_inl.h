// Stored keys and values as numbers to compute with, for the sources that Highway includes once for
// each instruction set: included inside them, behind highway.h.
#if defined(ECKART_NN_STORED_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECKART_NN_STORED_ROW_INL_H_
#undef ECKART_NN_STORED_ROW_INL_H_
#else
#define ECKART_NN_STORED_ROW_INL_H_
#endif

#include "eckart/nn/attention_simd.h"

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// One vector of numbers from memory: as they are, or widened from the patterns of bf16.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const hwy::HWY_NAMESPACE::TFromD<D>* from) {
  return hwy::HWY_NAMESPACE::LoadU(d, from);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load(D d, const std::uint16_t* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<float, D> narrow;
  const hn::RebindToUnsigned<decltype(narrow)> bits;
  const hn::Rebind<std::uint16_t, D> patterns;
  const auto widened =
      hn::BitCast(narrow, hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(patterns, from))));
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float)) {
    return widened;
  } else {
    return hn::PromoteTo(d, widened);
  }
}

// One number.
template <class T>
HWY_INLINE T load_one(const T* from) {
  return *from;
}
template <class T>
HWY_INLINE T load_one(const std::uint16_t* from) {
  const std::uint32_t bits = static_cast<std::uint32_t>(*from) << 16;
  float number;
  hwy::CopyBytes<sizeof(number)>(&bits, &number);
  return static_cast<T>(number);
}

template <class T>
const T* row_of(const StoredRows& rows, Index row, Index width, T* buffer) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (!rows.is_bf16) {
    const T* const from = static_cast<const T*>(rows.data) + row * rows.row_stride;
    if (rows.column_stride == 1) return from;
    for (Index i = 0; i < width; ++i) buffer[i] = from[i * rows.column_stride];
    return buffer;
  }
  const auto* const from = static_cast<const std::uint16_t*>(rows.data) + row * rows.row_stride;
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  Index i = 0;
  for (; i + lanes <= width; i += lanes) hn::StoreU(load(d, from + i), d, buffer + i);
  for (; i < width; ++i) buffer[i] = load_one<T>(from + i);
  return buffer;
}

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ECKART_NN_STORED_ROW_INL_H_
