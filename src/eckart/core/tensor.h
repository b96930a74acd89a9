// An array that owns its elements: row-major, aligned, copied as a value.
#pragma once

#include "eckart/core/errors.h"
#include "eckart/core/shape.h"
#include "eckart/core/tensor_view.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace detail {

/// Bytes that start at a cache line, which is also the widest vector register. Throws ShapeError,
/// naming `shape` and the bytes it would take, when the machine can't give them.
void* allocate_elements(const Shape& shape, std::size_t element_bytes);
void free_elements(void* elements);
/// The shape of a tensor that was moved from: one axis of size 0.
const Shape& taken_shape();

}  // namespace detail

/// Elements of type T (trivially copyable) in row-major order. Moving is free and leaves an empty
/// tensor of shape 0, copying copies.
template <class T>
class Tensor {
  static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);

 public:
  using value_type = T;

  /// An empty tensor of shape 0.
  Tensor() : Tensor(Shape{0}) {}
  /// Zeros. Throws ShapeError when the machine has not the memory for it.
  explicit Tensor(Shape shape) : Tensor(std::move(shape), T{}) {}
  Tensor(Shape shape, T fill) : Tensor(uninitialized(std::move(shape))) {
    std::fill_n(data(), count(), fill);
  }
  /// The given elements in row-major order. Throws ShapeError when their number is not the count.
  Tensor(Shape shape, const std::vector<T>& elements) : Tensor(uninitialized(std::move(shape))) {
    if (static_cast<Index>(elements.size()) != count()) {
      throw_shape_error("tensor: " + std::to_string(elements.size()) + " elements for " +
                        to_string(shape_) + ", which has " + std::to_string(count()));
    }
    std::copy(elements.begin(), elements.end(), data());
  }
  /// A row-major copy of a view, names included.
  template <class U>
  requires std::is_same_v<std::remove_const_t<U>, T>
  explicit Tensor(TensorView<U> view) : Tensor(uninitialized(view.shape())) {
    if (view.is_row_major()) {
      std::copy_n(view.data(), count(), data());
    } else {
      for_each_element([](T& to, const T& from) { to = from; }, this->view(),
                       TensorView<const T>(view));
    }
  }
  Tensor(const Tensor& other) : Tensor(other.view()) {}
  Tensor(Tensor&& other) noexcept = default;
  Tensor& operator=(const Tensor& other) { return *this = Tensor(other); }
  Tensor& operator=(Tensor&& other) noexcept = default;
  ~Tensor() = default;

  /// A vector of these elements.
  static Tensor vector(std::initializer_list<T> elements) {
    return Tensor(Shape{static_cast<Index>(elements.size())}, std::vector<T>(elements));
  }
  /// A matrix of these rows. Throws ShapeError when their lengths differ.
  static Tensor matrix(std::initializer_list<std::initializer_list<T>> rows) {
    const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
    std::vector<T> elements;
    for (const std::initializer_list<T>& row : rows) {
      if (row.size() != columns) {
        throw_shape_error("matrix: a row of " + std::to_string(row.size()) +
                          " elements after rows of " + std::to_string(columns));
      }
      elements.insert(elements.end(), row);
    }
    return Tensor(Shape{static_cast<Index>(rows.size()), static_cast<Index>(columns)}, elements);
  }
  /// Elements of undefined value, for a result that is about to be written whole.
  static Tensor uninitialized(Shape shape) {
    Tensor tensor{Unset{}};
    tensor.elements_.reset(static_cast<T*>(detail::allocate_elements(shape, sizeof(T))));
    tensor.shape_ = std::move(shape);
    return tensor;
  }

  T* data() { return elements_.get(); }
  const T* data() const { return elements_.get(); }
  const Shape& shape() const { return is_taken() ? detail::taken_shape() : shape_; }
  Index rank() const { return shape().rank(); }
  Index count() const { return shape().count(); }
  Index size(Index axis) const { return shape().size(axis); }
  Index size(std::string_view name) const { return shape().size(name); }

  TensorView<T> view() { return TensorView<T>(data(), shape()); }
  TensorView<const T> view() const { return TensorView<const T>(data(), shape()); }
  // NOLINTNEXTLINE(google-explicit-constructor): every operation takes views
  operator TensorView<T>() { return view(); }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator TensorView<const T>() const { return view(); }

  /// The element at one position an axis. Positions are asserted, not checked: see `at`.
  template <class... Positions>
  T& operator()(Positions... positions) {
    return data()[offset(positions...)];
  }
  template <class... Positions>
  const T& operator()(Positions... positions) const {
    return data()[offset(positions...)];
  }
  /// The element at one position an axis. Throws ShapeError out of range.
  template <class... Positions>
  T& at(Positions... positions) {
    return view().at(positions...);
  }
  template <class... Positions>
  const T& at(Positions... positions) const {
    return view().at(positions...);
  }

  /// The same elements with these axis names.
  Tensor named(std::vector<std::string> names) const& {
    return Tensor(*this).named(std::move(names));
  }
  Tensor named(std::vector<std::string> names) && {
    shape_ = shape().named(std::move(names));
    return std::move(*this);
  }
  /// The same elements under another shape. Throws ShapeError when the counts differ.
  Tensor reshaped(Shape shape) && {
    shape_ = detail::reshaped(this->shape(), detail::row_major_strides(this->shape()), shape).shape;
    return std::move(*this);
  }
  Tensor reshaped(Shape shape) const& { return Tensor(*this).reshaped(std::move(shape)); }

 private:
  struct Unset {};
  struct Free {
    void operator()(T* elements) const { detail::free_elements(elements); }
  };

  explicit Tensor(Unset) {}

  // Moving leaves a scalar's shape and no element, since any other shape would have to be
  // allocated, and a move must not fail.
  bool is_taken() const { return elements_ == nullptr && shape_.rank() == 0; }

  template <class... Positions>
  Index offset(Positions... positions) const {
    assert(static_cast<Index>(sizeof...(positions)) == rank());
    Index at = 0;
    Index axis = 0;
    ((at = at * shape_.size(axis++) + static_cast<Index>(positions)), ...);
    return at;
  }

  Shape shape_;
  std::unique_ptr<T[], Free> elements_;
};

}  // namespace eckart
