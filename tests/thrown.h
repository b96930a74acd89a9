// What an error says, as one string.
#pragma once

#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace eckart::testing {

/// The text of the `Error` that `body` throws: the message and, on a line of its own, the hint.
/// Fails the test when it throws nothing or something else.
template <class Error, class Body>
std::string thrown_by(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& other) {
    ADD_FAILURE() << "another error was thrown: " << other.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace eckart::testing
