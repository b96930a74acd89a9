// Why the system would not write, in words. Included by the library alone.
#pragma once

#include <string>

namespace eckart::detail {

/// `error` is an errno: `the disk is full`, `the file system is read-only`, …
std::string write_error_text(int error);
/// What to do about it; empty where nothing is known.
std::string write_error_hint(int error);

}  // namespace eckart::detail
