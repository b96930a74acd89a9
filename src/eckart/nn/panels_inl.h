// How a block's keys and values are laid out, for the sources that Highway includes once for each
// instruction set: included inside them, behind highway.h.
#if defined(ECKART_NN_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECKART_NN_PANELS_INL_H_
#undef ECKART_NN_PANELS_INL_H_
#else
#define ECKART_NN_PANELS_INL_H_
#endif

#include "eckart/nn/attention_simd.h"

#include <cstddef>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace eckart::detail::HWY_NAMESPACE {
namespace {

// Vectors of a panel: 6 rows of them are kept in registers, of which there are 16 or 32.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr std::size_t panel_vectors = 4;
#else
constexpr std::size_t panel_vectors = 2;
#endif

template <class T>
Index lanes_of() {
  return static_cast<Index>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<T>()));
}
template <class T>
Index panel_width_as() {
  return static_cast<Index>(panel_vectors) * lanes_of<T>();
}

// How the vectors of a row are shared out over panels: as evenly as can be.
struct Panels {
  Index n, vectors, longer;  // the first `longer` panels have one vector more

  explicit Panels(Index n_vectors) {
    n = (n_vectors + static_cast<Index>(panel_vectors) - 1) / static_cast<Index>(panel_vectors);
    vectors = n == 0 ? 0 : n_vectors / n;
    longer = n_vectors - n * vectors;
  }
  Index vectors_of(Index panel) const { return panel < longer ? vectors + 1 : vectors; }
};

}  // namespace
}  // namespace eckart::detail::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // ECKART_NN_PANELS_INL_H_
