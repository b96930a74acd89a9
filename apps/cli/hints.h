// The library's messages in the words of the command line.
#pragma once

#include <string>

namespace eckart::cli {

/// A hint that names options and commands where the library names arguments and functions; empty
/// where there is no such command. A hint that names neither stays as it is.
std::string command_hint(const std::string& hint);

/// `lowrank: a is …` for `low_rank: a is …`: the operation by the name of its command.
std::string command_message(const std::string& message);

}  // namespace eckart::cli
