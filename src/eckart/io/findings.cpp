#include "eckart/io/findings.h"

#include "eckart/core/errors.h"

#include <algorithm>
#include <utility>

namespace eckart {

void Findings::add(Finding finding) {
  ++(finding.severity == Severity::error ? errors_ : warnings_);
  const auto same_kind = std::count_if(findings_.begin(), findings_.end(), [&](const Finding& f) {
    return f.rule == finding.rule && f.file == finding.file;
  });
  if (static_cast<std::size_t>(same_kind) < kept_per_rule) findings_.push_back(std::move(finding));
}

void Findings::append(const Findings& other) {
  findings_.insert(findings_.end(), other.findings_.begin(), other.findings_.end());
  errors_ += other.errors_;
  warnings_ += other.warnings_;
}

const Finding* Findings::first_error() const {
  const auto found = std::find_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
    return finding.severity == Severity::error;
  });
  return found == findings_.end() ? nullptr : &*found;
}

void throw_first_error(const Findings& findings) {
  const Finding* const error = findings.first_error();
  if (error == nullptr) return;
  std::string message = error->file + ": ";
  if (!error->tensor.empty()) message += "tensor " + error->tensor + ": ";
  throw_format_error(error->file, error->begin, message + error->message, error->hint);
}

}  // namespace eckart
