#include "eckart/lora/adapter_fingerprint.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace eckart::detail {

std::string exact_text(double x) { return fmt::format("{:a}", x); }

void add_adapter(Fingerprint& print, const Adapter& adapter) {
  const std::filesystem::path file = adapter.file().path();
  print.add_file(file);
  const std::filesystem::path config = file.parent_path() / "adapter_config.json";
  std::error_code ignored;
  if (std::filesystem::is_regular_file(config, ignored)) print.add_file(config);
  for (const AdapterModule& module : adapter.modules()) {
    print.add(fmt::format("{} {} {} {} {}", module.name, to_string(module.kind), module.rank,
                          exact_text(module.alpha), exact_text(module.scale)));
  }
  for (const SavedTensor& saved : adapter.saved()) print.add("saved " + saved.name);
}

}  // namespace eckart::detail
