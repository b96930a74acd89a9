#include "eckart/io/npy_write.h"

#include "eckart/core/errors.h"
#include "eckart/io/atomic_file.h"
#include "eckart/io/npy.h"

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

namespace eckart {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t block_elements = 1 << 14;  // gathered at a time: 128 KiB at most
// NumPy leaves room in the header for the first size to grow to 21 characters.
constexpr std::size_t growth_characters = 21;
constexpr std::size_t alignment = 64;
constexpr std::size_t fixed_bytes = 10;  // magic, version and length
constexpr Index max_rank = 64;

std::string header_text(const char* descr, const Shape& shape) {
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
  // A header that is aligned already gets 64 spaces more: so does NumPy's.
  text.append(alignment - (fixed_bytes + text.size() + 1) % alignment, ' ');
  return text + '\n';
}

}  // namespace

template <class T>
std::vector<std::byte> npy_header_bytes(const Shape& shape) {
  if (shape.rank() > max_rank) {
    throw_argument_error("save: the array has " + std::to_string(shape.rank()) +
                         " axes, but NumPy has at most " + std::to_string(max_rank));
  }
  const char* const descr = std::is_same_v<T, float>    ? "<f4"
                            : std::is_same_v<T, double> ? "<f8"
                                                        : "<i8";
  const std::string text = header_text(descr, shape);
  std::string all = "\x93NUMPY";
  all += '\x01';
  all += '\0';
  all += static_cast<char>(text.size() & 0xff);
  all += static_cast<char>(text.size() >> 8);
  all += text;
  const auto bytes = std::as_bytes(std::span(all));
  return {bytes.begin(), bytes.end()};
}

template <class T>
void write_npy_elements(TensorView<const T> tensor,
                        const std::function<void(std::span<const std::byte>)>& write) {
  if (tensor.is_row_major()) {
    write(std::as_bytes(std::span(tensor.data(), static_cast<std::size_t>(tensor.count()))));
    return;
  }
  std::vector<T> block;
  block.reserve(block_elements);
  for_each_element(
      [&](const T& element) {
        block.push_back(element);
        if (block.size() < block_elements) return;
        write(std::as_bytes(std::span(block)));
        block.clear();
      },
      tensor);
  write(std::as_bytes(std::span(block)));
}

template <class T>
void save_npy(const std::filesystem::path& path, TensorView<const T> tensor) {
  AtomicFile file(path);
  write_npy(file, tensor);
  file.commit();
}

template <class T>
void write_npy(AtomicFile& file, TensorView<const T> tensor) {
  const std::vector<std::byte> header = npy_header_bytes<T>(tensor.shape());
  file.reserve(header.size() + static_cast<std::size_t>(tensor.count()) * sizeof(T));
  file.write(header);
  write_npy_elements(tensor, [&](std::span<const std::byte> bytes) { file.write(bytes); });
}

#define ECKART_INSTANTIATE(T)                                                                  \
  template std::vector<std::byte> npy_header_bytes<T>(const Shape&);                           \
  template void write_npy_elements<T>(TensorView<const T>,                                     \
                                      const std::function<void(std::span<const std::byte>)>&); \
  template void write_npy<T>(AtomicFile&, TensorView<const T>);                                \
  template void save_npy<T>(const std::filesystem::path&, TensorView<const T>);
ECKART_INSTANTIATE(float)
ECKART_INSTANTIATE(double)
ECKART_INSTANTIATE(std::int64_t)
#undef ECKART_INSTANTIATE

}  // namespace eckart
