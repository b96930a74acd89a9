#include "eckart/core/errors.h"

#include <utility>

namespace eckart {
namespace {

std::string joined(const std::string& message, const std::string& hint) {
  return hint.empty() ? message : message + "\n  hint: " + hint;
}

template <class Error>
[[noreturn]] void raise(Error error) {
  throw error;  // the only throw of the library
}

}  // namespace

ErrorText::ErrorText(std::string message, std::string hint)
    : message_(std::move(message)), hint_(std::move(hint)) {}

ShapeError::ShapeError(const std::string& message, const std::string& hint)
    : std::invalid_argument(joined(message, hint)), ErrorText(message, hint) {}

ArgumentError::ArgumentError(const std::string& message, const std::string& hint)
    : std::invalid_argument(joined(message, hint)), ErrorText(message, hint) {}

FileError::FileError(std::string path, const std::string& message, const std::string& hint)
    : std::runtime_error(joined(message, hint)), ErrorText(message, hint), path_(std::move(path)) {}

FormatError::FormatError(std::string path, std::optional<std::uint64_t> offset,
                         const std::string& message, const std::string& hint)
    : FileError(std::move(path), message, hint), offset_(offset) {}

void throw_shape_error(const std::string& message, const std::string& hint) {
  raise(ShapeError(message, hint));
}

void throw_argument_error(const std::string& message, const std::string& hint) {
  raise(ArgumentError(message, hint));
}

void throw_file_error(const std::string& path, const std::string& message,
                      const std::string& hint) {
  raise(FileError(path, message, hint));
}

void throw_format_error(const std::string& path, std::optional<std::uint64_t> offset,
                        const std::string& message, const std::string& hint) {
  raise(FormatError(path, offset, message, hint));
}

}  // namespace eckart
