// Errors of the library, each with a message in one grammar and, where something would fit, a hint.
//
// Grammar of a message: `operation: who is what, but which rule`. A hint lists every arrangement
// that fits, in words; where none fits there is no hint.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace eckart {

/// What every Eckart error carries beside `what()`, which is the message and the hint together.
class ErrorText {
 public:
  ErrorText(std::string message, std::string hint);
  virtual ~ErrorText() = default;

  /// The sentence alone, without the hint.
  const std::string& message() const { return message_; }
  /// What to do, or empty where nothing would fit.
  const std::string& hint() const { return hint_; }

 private:
  std::string message_;
  std::string hint_;
};

/// Shapes, axes or names that do not go together.
class ShapeError : public std::invalid_argument, public ErrorText {
 public:
  explicit ShapeError(const std::string& message, const std::string& hint = {});
};

/// Any other argument that the operation can't take.
class ArgumentError : public std::invalid_argument, public ErrorText {
 public:
  explicit ArgumentError(const std::string& message, const std::string& hint = {});
};

/// A file that can't be opened, read or written; the system's reason is in the message.
class FileError : public std::runtime_error, public ErrorText {
 public:
  FileError(std::string path, const std::string& message, const std::string& hint = {});

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A file whose bytes break a rule of its format.
class FormatError : public FileError {
 public:
  FormatError(std::string path, std::optional<std::uint64_t> offset, const std::string& message,
              const std::string& hint = {});

  /// Where in the file, in bytes from its start, if the rule has a place.
  std::optional<std::uint64_t> offset() const { return offset_; }

 private:
  std::optional<std::uint64_t> offset_;
};

/// All throwing of the library goes through these functions, so that a build without exceptions
/// has one place to change.
[[noreturn]] void throw_shape_error(const std::string& message, const std::string& hint = {});
[[noreturn]] void throw_argument_error(const std::string& message, const std::string& hint = {});
[[noreturn]] void throw_file_error(const std::string& path, const std::string& message,
                                   const std::string& hint = {});
[[noreturn]] void throw_format_error(const std::string& path, std::optional<std::uint64_t> offset,
                                     const std::string& message, const std::string& hint = {});

}  // namespace eckart
