#include "eckart/io/npy.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/npy_descr.h"
#include "eckart/io/npy_elements.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t block_elements = 1 << 14;  // swapped or gathered at a time: 128 KiB at most

// NumPy leaves room in the header for the first size to grow to 21 characters.
constexpr std::size_t growth_characters = 21;
constexpr std::size_t alignment = 64;
constexpr Index max_rank = 64;

template <class T>
void widen_swapped(Dtype dtype, std::span<const std::byte> data, std::span<T> out) {
  const std::size_t size = static_cast<std::size_t>(bits(dtype)) / 8;
  std::vector<std::byte> block(std::min(out.size(), block_elements) * size);
  for (std::size_t begin = 0; begin < out.size(); begin += block_elements) {
    const std::size_t n = std::min(block_elements, out.size() - begin);
    for (std::size_t i = 0; i < n; ++i) {
      const std::byte* const element = &data[(begin + i) * size];
      std::reverse_copy(element, element + size, &block[i * size]);
    }
    widen(dtype, std::span<const std::byte>(block).first(n * size), out.subspan(begin, n));
  }
}

// Tile by tile, so that neither side leaves the cache between two elements of a line.
template <class T>
Tensor<T> transposed(const Tensor<T>& stored) {
  constexpr Index tile = 32;
  const Index rows = stored.size(1);
  const Index columns = stored.size(0);
  Tensor<T> result = Tensor<T>::uninitialized({rows, columns});
  for (Index row = 0; row < rows; row += tile) {
    for (Index column = 0; column < columns; column += tile) {
      for (Index i = row; i < std::min(row + tile, rows); ++i) {
        for (Index j = column; j < std::min(column + tile, columns); ++j) {
          result.data()[i * columns + j] = stored.data()[j * rows + i];
        }
      }
    }
  }
  return result;
}

std::string npy_header_text(const char* descr, const Shape& shape) {
  std::string sizes;
  for (Index axis = 0; axis < shape.rank(); ++axis) {
    if (axis > 0) sizes += ", ";
    sizes += std::to_string(shape.size(axis));
  }
  if (shape.rank() == 1) sizes += ',';
  std::string text =
      std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  if (shape.rank() > 0) {
    text.append(growth_characters - std::to_string(shape.size(0)).size(), ' ');
  }
  constexpr std::size_t fixed_bytes = 10;  // magic, version and length
  // A header that is aligned already gets 64 spaces more: so does NumPy's.
  text.append(alignment - (fixed_bytes + text.size() + 1) % alignment, ' ');
  return text + '\n';
}

}  // namespace

std::optional<Dtype> npy_element_dtype(const NpyHeader& header, const NpyOptions& options,
                                       const Finding& where, Findings& findings) {
  if (options.reinterpret) {
    const Dtype dtype = *options.reinterpret;
    if (!is_widenable(dtype)) {
      throw_argument_error("npy: the elements can't be reinterpreted as " +
                           std::string(to_string(dtype)) + ", which can't be widened to float");
    }
    const auto size = static_cast<std::uint64_t>(bits(dtype)) / 8;
    if (size != header.element_bytes) {
      throw_argument_error("npy: the elements have " + std::to_string(header.element_bytes) +
                           " bytes (descr " + printable(header.descr) + "), but " +
                           std::string(to_string(dtype)) + " has " + std::to_string(size));
    }
    return dtype;
  }
  const auto obstacle = npy_obstacle(header.descr, header.dtype);
  if (!obstacle) return header.dtype;
  Finding finding = where;
  finding.rule = "npy_dtype";
  finding.message = obstacle->message;
  finding.hint = obstacle->hint;
  findings.add(std::move(finding));
  return std::nullopt;
}

template <class T>
Tensor<T> convert_npy(const NpyHeader& header, Dtype dtype, std::span<const std::byte> data) {
  std::vector<Index> sizes = header.shape.sizes();
  const bool is_reversed = header.fortran_order && sizes.size() > 1;
  if (is_reversed) std::reverse(sizes.begin(), sizes.end());
  Tensor<T> stored = Tensor<T>::uninitialized(Shape(std::move(sizes)));
  const std::span<T> out(stored.data(), static_cast<std::size_t>(stored.count()));
  if (header.big_endian && bits(dtype) > 8) {
    widen_swapped(dtype, data, out);
  } else {
    widen(dtype, data, out);
  }
  if (!is_reversed) return stored;
  if (stored.rank() == 2) return transposed(stored);
  std::vector<Index> axes;
  for (Index axis = stored.rank(); axis-- > 0;) axes.push_back(axis);
  return Tensor<T>(stored.view().permute(axes));
}

template <class T>
Tensor<T> read_npy(std::span<const std::byte> bytes, const std::string& name,
                   const NpyOptions& options) {
  Findings findings;
  const std::optional<NpyHeader> header = read_npy_header(bytes, bytes.size(), name, findings);
  std::optional<Dtype> dtype;
  if (header) {
    Finding where;
    where.file = name;
    where.begin = header->data_begin;
    where.end = bytes.size();
    dtype = npy_element_dtype(*header, options, where, findings);
  }
  throw_first_error(findings);
  const std::uint64_t data_bytes =
      static_cast<std::uint64_t>(header->shape.count()) * header->element_bytes;
  return convert_npy<T>(*header, *dtype, bytes.subspan(header->data_begin, data_bytes));
}

template <class T>
Tensor<T> load_npy(const std::filesystem::path& path, const NpyOptions& options) {
  const MappedFile file = open_mapped(path);
  return read_npy<T>(file.bytes(), file.path(), options);
}

template <class T>
void save_npy(const std::filesystem::path& path, TensorView<const T> tensor) {
  if (tensor.rank() > max_rank) {
    throw_argument_error("save: the array has " + std::to_string(tensor.rank()) +
                         " axes, but NumPy has at most " + std::to_string(max_rank));
  }
  const char* const descr = std::is_same_v<T, float>    ? "<f4"
                            : std::is_same_v<T, double> ? "<f8"
                                                        : "<i8";
  const std::string text = npy_header_text(descr, tensor.shape());
  const std::array<char, 10> begin = {'\x93',
                                      'N',
                                      'U',
                                      'M',
                                      'P',
                                      'Y',
                                      1,
                                      0,
                                      static_cast<char>(text.size() & 0xff),
                                      static_cast<char>(text.size() >> 8)};
  const auto count = static_cast<std::size_t>(tensor.count());
  AtomicFile file(path);
  file.reserve(begin.size() + text.size() + count * sizeof(T));
  file.write(std::as_bytes(std::span(begin)));
  file.write(std::as_bytes(std::span(text)));
  if (tensor.is_row_major()) {
    file.write(std::as_bytes(std::span(tensor.data(), count)));
  } else {
    std::vector<T> block;
    block.reserve(block_elements);
    for_each_element(
        [&](const T& element) {
          block.push_back(element);
          if (block.size() < block_elements) return;
          file.write(std::as_bytes(std::span(block)));
          block.clear();
        },
        tensor);
    file.write(std::as_bytes(std::span(block)));
  }
  file.commit();
}

template Tensor<float> convert_npy<float>(const NpyHeader&, Dtype, std::span<const std::byte>);
template Tensor<double> convert_npy<double>(const NpyHeader&, Dtype, std::span<const std::byte>);
template Tensor<float> read_npy<float>(std::span<const std::byte>, const std::string&,
                                       const NpyOptions&);
template Tensor<double> read_npy<double>(std::span<const std::byte>, const std::string&,
                                         const NpyOptions&);
template Tensor<float> load_npy<float>(const std::filesystem::path&, const NpyOptions&);
template Tensor<double> load_npy<double>(const std::filesystem::path&, const NpyOptions&);
template void save_npy<float>(const std::filesystem::path&, TensorView<const float>);
template void save_npy<double>(const std::filesystem::path&, TensorView<const double>);
template void save_npy<std::int64_t>(const std::filesystem::path&, TensorView<const std::int64_t>);

}  // namespace eckart
