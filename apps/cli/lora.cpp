// eckart lora: adapters of low rank.
#include "lora.h"

#include "commands.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {

void add_lora(CommandLine& line) {
  add_command_group(
      line, {.name = "lora",
             .summary = "Adapters of low rank: look into them, convert them",
             .examples = {"eckart lora inspect adapter/",
                          "eckart lora convert adapter/ --to kohya -o adapter.safetensors"}});
}

}  // namespace eckart::cli
