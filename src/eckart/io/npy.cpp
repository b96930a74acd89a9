#include "eckart/io/npy.h"

#include "eckart/core/errors.h"
#include "eckart/io/npy_descr.h"
#include "eckart/io/npy_elements.h"
#include "eckart/io/widen.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

namespace eckart {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t block_elements = 1 << 14;  // swapped or gathered at a time: 128 KiB at most

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

template Tensor<float> convert_npy<float>(const NpyHeader&, Dtype, std::span<const std::byte>);
template Tensor<double> convert_npy<double>(const NpyHeader&, Dtype, std::span<const std::byte>);
template Tensor<float> read_npy<float>(std::span<const std::byte>, const std::string&,
                                       const NpyOptions&);
template Tensor<double> read_npy<double>(std::span<const std::byte>, const std::string&,
                                         const NpyOptions&);
template Tensor<float> load_npy<float>(const std::filesystem::path&, const NpyOptions&);
template Tensor<double> load_npy<double>(const std::filesystem::path&, const NpyOptions&);

}  // namespace eckart
