// The commands of `eckart lora`. Each file adds one to the group.
#pragma once

#include "commands.h"

namespace eckart::cli {

void add_lora_extract(CommandLine& line, CLI::App* group);
void add_lora_inspect(CommandLine& line, CLI::App* group);
void add_lora_convert(CommandLine& line, CLI::App* group);
void add_lora_merge(CommandLine& line, CLI::App* group);
void add_lora_verify(CommandLine& line, CLI::App* group);
void add_lora_resize(CommandLine& line, CLI::App* group);
void add_lora_combine(CommandLine& line, CLI::App* group);
void add_lora_init(CommandLine& line, CLI::App* group);

}  // namespace eckart::cli
