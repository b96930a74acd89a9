// adapter_config.json -> ranks, targets, and back: no input may crash or hang, and what is written
// reads the same.
#include "eckart/core/errors.h"
#include "eckart/lora/adapter_config.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  try {
    const eckart::AdapterConfig config = eckart::parse_adapter_config(json, "adapter_config.json");
    const std::string written = eckart::to_json(config);
    if (eckart::to_json(eckart::parse_adapter_config(written, "written")) != written) std::abort();
    for (const std::string_view module : {"model.layers.1.self_attn.q_proj", "lm_head", ""}) {
      if (eckart::rank_of(config, module) < 1) std::abort();
      static_cast<void>(eckart::alpha_of(config, module));
      static_cast<void>(eckart::is_target(config, module));
    }
  } catch (const eckart::FormatError&) {
  } catch (const eckart::ArgumentError&) {  // an expression that takes too many steps
  }
  return 0;
}
