// config.json -> architecture -> counts: no input may crash, hang or take memory beyond its size.
#include "eckart/core/errors.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/count.h"
#include "eckart/model/fit.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

// Refusing an input is the parser's work; only Eckart's own errors are refusals.
template <class Body>
void run(const Body& body) {
  try {
    body();
  } catch (const eckart::FormatError&) {
  } catch (const eckart::ArgumentError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  run([&] {
    const eckart::Config config = eckart::parse_config(json, "config.json");
    const eckart::Architecture arch = eckart::read_architecture(config);
    run([&] {
      const eckart::Count count = eckart::count(arch, {.train = true, .lora_rank = 1});
      if (count.parameters.active > count.parameters.total) std::abort();
      if (count.kv_cache.bytes_at_context > count.kv_cache.bytes_at_context_without_windows) {
        std::abort();
      }
    });
    run([&] { eckart::count(arch, {.context = 7, .batch = 3}); });
    run([&] { eckart::fit(arch, {.bytes = 24'000'000'000}); });
  });
  return 0;
}
