// Why a text is no JSON, in the words of a well-kept parser. Internal.
#pragma once

#include "eckart/io/json_events.h"

#include <optional>
#include <string_view>

namespace eckart {

/// The first place where `text`, which is valid UTF-8, breaks JSON's rules or the limits; nothing
/// when it is sound. One pass; memory for the longest token.
std::optional<JsonError> find_json_error(std::string_view text, const JsonLimits& limits);

}  // namespace eckart
