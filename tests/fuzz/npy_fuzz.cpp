// Any bytes as an .npy file: the header alone, the elements, and the elements as another dtype.
#include "eckart/core/errors.h"
#include "eckart/io/npy.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace {

template <class T>
void load(std::span<const std::byte> bytes, const eckart::NpyOptions& options) {
  try {
    const eckart::Tensor<T> tensor = eckart::read_npy<T>(bytes, "fuzz.npy", options);
    // No element comes from nowhere: the smallest takes a byte.
    if (static_cast<std::size_t>(tensor.count()) > bytes.size()) std::abort();
  } catch (const eckart::FileError&) {
  } catch (const eckart::ArgumentError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  eckart::Findings findings;
  const auto header = eckart::read_npy_header(bytes, bytes.size(), "fuzz.npy", findings);
  // Either it can be read or something is wrong with it.
  if (header.has_value() == (findings.errors() > 0)) std::abort();
  load<float>(bytes, {});
  load<double>(bytes, {});
  if (!header) return 0;
  for (const eckart::Dtype dtype : {eckart::Dtype::bf16, eckart::Dtype::f8_e4m3, eckart::Dtype::u64,
                                    eckart::Dtype::i32, eckart::Dtype::f4}) {
    load<float>(bytes, {.reinterpret = dtype});
  }
  return 0;
}
