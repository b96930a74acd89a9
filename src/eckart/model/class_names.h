// What transformers' class of a model calls its parameters, where its files don't say it.
#pragma once

#include "eckart/model/config.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eckart {

/// The name that the class has since transformers 5 for a tensor of a file that keeps its older one:
/// `lm_head.weight` for GPT-NeoX's `embed_out.weight`; other names as they are. `model_type`: of the
/// config.
std::string class_name(std::string_view model_type, std::string_view name);

/// A parameter of the class that is the same one as a tensor of the file, and is not stored.
struct SharedName {
  std::string name;    // `encoder.embed_tokens.weight`
  std::string stored;  // `shared.weight`
};
/// Those of an encoder and a decoder that share a table (T5, BART). `names`: all of the file.
std::vector<SharedName> shared_names(const Config& config,
                                     const std::set<std::string, std::less<>>& names);

/// PEFT's task_type for a model of this config; empty: none that it needs to know.
std::string peft_task(const Config* config);
/// Ends of the names of modules that PEFT saves whole in a model of this task, asked or not.
std::vector<std::string_view> heads_of_task(std::string_view task);

}  // namespace eckart
