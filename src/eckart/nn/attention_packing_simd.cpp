// Highway includes this file once for each instruction set and again for the part that is compiled
// once; HWY_DYNAMIC_DISPATCH then takes the best set that the machine has.
#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "eckart/nn/attention_packing_simd.cpp"
// What follows highway.h is made anew for each instruction set, and must not stand before it.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "eckart/nn/panels_inl.h"
#include "eckart/nn/stored_row_inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// No standard-library template is used up to HWY_AFTER_NAMESPACE: its instantiation would be
// compiled for this instruction set and could be linked into code that runs on any machine.
namespace hn = hwy::HWY_NAMESPACE;

// Four keys of a panel: number i of key r goes to out[i * panel + r].
void interleave(const float* const* rows, Index width, Index panel, float* out) {
  Index i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  for (; i + 4 <= width; i += 4) {
    const auto a = hn::LoadU(d, rows[0] + i);
    const auto b = hn::LoadU(d, rows[1] + i);
    const auto c = hn::LoadU(d, rows[2] + i);
    const auto e = hn::LoadU(d, rows[3] + i);
    const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
    const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
    const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    float* const to = out + i * panel;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, to + panel);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, to + 2 * panel);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, to + 3 * panel);
  }
#endif
  for (; i < width; ++i) {
    for (Index r = 0; r < 4; ++r) out[i * panel + r] = rows[r][i];
  }
}
void interleave(const double* const* rows, Index width, Index panel, double* out) {
  Index i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<double, 2> d;
  for (; i + 2 <= width; i += 2) {
    for (Index r = 0; r < 4; r += 2) {
      const auto a = hn::LoadU(d, rows[r] + i);
      const auto b = hn::LoadU(d, rows[r + 1] + i);
      hn::StoreU(hn::InterleaveLower(d, a, b), d, out + i * panel + r);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, out + (i + 1) * panel + r);
    }
  }
#endif
  for (; i < width; ++i) {
    for (Index r = 0; r < 4; ++r) out[i * panel + r] = rows[r][i];
  }
}

template <class T>
void pack_keys_as(const KeyPacking<T>& p) {
  const Index panel = panel_width_as<T>();
  T* packed = p.packed;
  for (Index begin = 0; begin < p.n; begin += panel, packed += panel * p.width) {
    const Index count = p.n - begin < panel ? p.n - begin : panel;
    Index r = 0;
    for (; r + 4 <= count; r += 4) {
      const T* rows[4];
      for (Index i = 0; i < 4; ++i) {
        rows[i] = row_of(p.keys, p.first + begin + r + i, p.width, p.buffer + i * p.width);
      }
      interleave(rows, p.width, panel, packed + r);
    }
    for (; r < panel; ++r) {
      const T* const row =
          r < count ? row_of(p.keys, p.first + begin + r, p.width, p.buffer) : nullptr;
      for (Index i = 0; i < p.width; ++i) packed[i * panel + r] = r < count ? row[i] : T{0};
    }
  }
}

// Columns [column, column + n_vectors vectors) of values, where they lie in order and in whole
// vectors, to one panel. Returns NaN in a lane once a number there is NaN or infinite.
template <class T>
hn::Vec<hn::ScalableTag<T>> pack_whole_panel(const ValuePacking<T>& p, Index column,
                                             Index n_vectors, T* to) {
  const hn::ScalableTag<T> d;
  const Index lanes = lanes_of<T>();
  auto lost = hn::Zero(d);
  const T* from = static_cast<const T*>(p.values.data) + p.first * p.values.row_stride + column;
  for (Index row = 0; row < p.n; ++row, from += p.values.row_stride) {
    for (Index v = 0; v < n_vectors; ++v, to += lanes) {
      const auto numbers = hn::LoadU(d, from + v * lanes);
      lost = hn::Add(lost, hn::Sub(numbers, numbers));
      hn::Store(numbers, d, to);
    }
  }
  for (Index i = 0; i < (p.rows - p.n) * n_vectors; ++i, to += lanes) {
    hn::Store(hn::Zero(d), d, to);
  }
  return lost;
}

// The same columns of any values, number by number.
template <class T>
T pack_panel(const ValuePacking<T>& p, Index column, Index width, T* to) {
  T lost = 0;
  for (Index row = 0; row < p.rows; ++row, to += width) {
    const T* const from = row < p.n ? row_of(p.values, p.first + row, p.width, p.buffer) : nullptr;
    for (Index i = 0; i < width; ++i) {
      to[i] = from != nullptr && column + i < p.width ? from[column + i] : T{0};
      lost += to[i] - to[i];
    }
  }
  return lost;
}

template <class T>
bool pack_values_as(const ValuePacking<T>& p) {
  const hn::ScalableTag<T> d;
  const Index lanes = lanes_of<T>();
  const Panels panels((p.width + lanes - 1) / lanes);
  const bool is_in_order = !p.values.is_bf16 && p.values.column_stride == 1;
  auto lost = hn::Zero(d);
  T lost_one = 0;
  T* to = p.packed;
  Index column = 0;
  for (Index panel = 0; panel < panels.n; ++panel) {
    const Index n_vectors = panels.vectors_of(panel);
    const Index width = n_vectors * lanes;
    if (is_in_order && column + width <= p.width) {
      lost = hn::Add(lost, pack_whole_panel(p, column, n_vectors, to));
    } else {
      lost_one += pack_panel(p, column, width, to);
    }
    to += p.rows * width;
    column += width;
  }
  return hn::AllTrue(d, hn::Eq(lost, lost)) && lost_one == lost_one;
}

Index panel_float() { return panel_width_as<float>(); }
Index vector_float() { return lanes_of<float>(); }
const float* stored_row_float(const StoredRows& rows, Index row, Index width, float* buffer) {
  return row_of(rows, row, width, buffer);
}
void pack_keys_float(const KeyPacking<float>& packing) { pack_keys_as(packing); }
bool pack_values_float(const ValuePacking<float>& packing) { return pack_values_as(packing); }
Index panel_double() { return panel_width_as<double>(); }
Index vector_double() { return lanes_of<double>(); }
const double* stored_row_double(const StoredRows& rows, Index row, Index width, double* buffer) {
  return row_of(rows, row, width, buffer);
}
void pack_keys_double(const KeyPacking<double>& packing) { pack_keys_as(packing); }
bool pack_values_double(const ValuePacking<double>& packing) { return pack_values_as(packing); }

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace eckart::detail {
namespace {

HWY_EXPORT(panel_float);
HWY_EXPORT(panel_double);
HWY_EXPORT(vector_float);
HWY_EXPORT(vector_double);
HWY_EXPORT(stored_row_float);
HWY_EXPORT(stored_row_double);
HWY_EXPORT(pack_keys_float);
HWY_EXPORT(pack_keys_double);
HWY_EXPORT(pack_values_float);
HWY_EXPORT(pack_values_double);

}  // namespace

template <>
Index panel_width<float>() {
  return HWY_DYNAMIC_DISPATCH(panel_float)();
}
template <>
Index vector_width<float>() {
  return HWY_DYNAMIC_DISPATCH(vector_float)();
}
template <>
const float* stored_row(const StoredRows& rows, Index row, Index width, float* buffer) {
  return HWY_DYNAMIC_DISPATCH(stored_row_float)(rows, row, width, buffer);
}
template <>
void pack_keys(const KeyPacking<float>& packing) {
  HWY_DYNAMIC_DISPATCH(pack_keys_float)(packing);
}
template <>
bool pack_values(const ValuePacking<float>& packing) {
  return HWY_DYNAMIC_DISPATCH(pack_values_float)(packing);
}

template <>
Index panel_width<double>() {
  return HWY_DYNAMIC_DISPATCH(panel_double)();
}
template <>
Index vector_width<double>() {
  return HWY_DYNAMIC_DISPATCH(vector_double)();
}
template <>
const double* stored_row(const StoredRows& rows, Index row, Index width, double* buffer) {
  return HWY_DYNAMIC_DISPATCH(stored_row_double)(rows, row, width, buffer);
}
template <>
void pack_keys(const KeyPacking<double>& packing) {
  HWY_DYNAMIC_DISPATCH(pack_keys_double)(packing);
}
template <>
bool pack_values(const ValuePacking<double>& packing) {
  return HWY_DYNAMIC_DISPATCH(pack_values_double)(packing);
}

}  // namespace eckart::detail
#endif  // HWY_ONCE
