// Any bytes as a table of numbers.
#include "eckart/core/errors.h"
#include "eckart/io/csv.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const eckart::CsvTable table =
        eckart::read_csv({reinterpret_cast<const char*>(data), size}, "fuzz.csv");
    // No number comes from nowhere, and names are those of all columns or none.
    if (static_cast<std::size_t>(table.values.count()) > size) std::abort();
    const auto columns = static_cast<std::size_t>(table.values.size(1));
    if (!table.columns.empty() && table.columns.size() != columns) std::abort();
  } catch (const eckart::FormatError&) {
  }
  return 0;
}
