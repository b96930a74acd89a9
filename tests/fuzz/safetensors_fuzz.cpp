// Any bytes as a safetensors file, and as the header of one.
#include "eckart/io/findings.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/validate.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// Messages can be printed as they are.
void check_texts(const eckart::Findings& findings) {
  for (const eckart::Finding& finding : findings.all()) {
    require(!finding.rule.empty() && !finding.message.empty());
    require(finding.message == eckart::printable_path(finding.message));
    require(!finding.begin || !finding.end || *finding.begin <= *finding.end);
  }
}

// What a header without an error promises: tensors side by side from the data's begin to the end.
void check_header(const eckart::SafetensorsHeader& header, std::uint64_t file_size) {
  std::uint64_t expected = header.data_begin;
  for (const eckart::StoredTensor& tensor : header.tensors) {
    require(tensor.begin == expected && tensor.end >= tensor.begin);
    require(eckart::stored_bytes(tensor.dtype, tensor.shape.count()) == tensor.bytes());
    expected = tensor.end;
  }
  require(expected == file_size);
}

void read(std::span<const std::byte> file) {
  eckart::Findings strict;
  eckart::Findings lenient;
  eckart::read_safetensors_header(file, "fuzz", eckart::Strictness::check, strict);
  const eckart::SafetensorsHeader header =
      eckart::read_safetensors_header(file, "fuzz", eckart::Strictness::read, lenient);
  require(strict.errors() >= lenient.errors());
  if (lenient.errors() == 0) check_header(header, file.size());
  check_texts(strict);
  check_texts(lenient);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  read(bytes);
  if (const std::optional<eckart::MistakenFile> mistaken = eckart::recognize(bytes)) {
    require(mistaken->message == eckart::printable_path(mistaken->message));
  }
  // Mutations rarely keep the length true: read the same as a header alone, too.
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(size >> (8 * i) & 0xffU);
  file.append(reinterpret_cast<const char*>(data), size);
  read(std::as_bytes(std::span(file)));
  return 0;
}
