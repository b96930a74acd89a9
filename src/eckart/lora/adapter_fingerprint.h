// What of an adapter a result depends on. Included by the library alone.
#pragma once

#include "eckart/lora/adapter.h"
#include "eckart/lora/output_folder.h"

#include <string>

namespace eckart::detail {

/// Every bit of it, unlike a decimal of fixed length.
std::string exact_text(double x);

/// The file, the config beside it (an adapter may be given as a file), and what became of both: the
/// modules' names, as a base has resolved them, ranks, alphas and scales, and the saved tensors'
/// names.
void add_adapter(Fingerprint& print, const Adapter& adapter);

}  // namespace eckart::detail
