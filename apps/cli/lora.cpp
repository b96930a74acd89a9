// eckart lora: adapters of low rank.
#include "lora.h"

#include "commands.h"
#include <CLI/CLI.hpp>

namespace eckart::cli {

void add_lora(CommandLine& line) {
  CLI::App* const group = add_command_group(
      line, {.name = "lora",
             .summary = "Adapters of low rank: extract, merge, resize, combine, convert them",
             .examples = {"eckart lora extract base/ tuned/ --rank 16 -o adapter",
                          "eckart lora inspect adapter/",
                          "eckart lora convert adapter/ --to kohya -o adapter.safetensors",
                          "eckart lora merge base/ adapter/ -o merged --verify"}});
  add_lora_inspect(line, group);
  add_lora_convert(line, group);
  add_lora_extract(line, group);
  add_lora_merge(line, group);
  add_lora_verify(line, group);
  add_lora_resize(line, group);
  add_lora_combine(line, group);
  add_lora_init(line, group);
}

}  // namespace eckart::cli
