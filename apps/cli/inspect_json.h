#pragma once

#include "inspect_report.h"
#include "json_output.h"

namespace eckart::cli {

/// The report of `eckart inspect --json`; `list_tensors` adds every tensor.
Json to_json(const Inspection& inspection, bool list_tensors);

}  // namespace eckart::cli
