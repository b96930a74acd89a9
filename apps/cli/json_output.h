// JSON on standard output: keys in the order they are written, invalid UTF-8 replaced.
#pragma once

#include "console.h"
#include <nlohmann/json.hpp>

namespace eckart::cli {

using Json = nlohmann::ordered_json;

inline void print_json(const Json& json) {
  print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace eckart::cli
