// Parts of an extraction's report. Included by the library alone.
#pragma once

#include "eckart/lora/extract.h"

#include <string>

namespace eckart {

/// The plan's tensors and norms, without ranks and errors.
ExtractReport empty_report(const ExtractPlan& plan, const ExtractOptions& options);
/// Sets the errors of the whole from those of the tensors.
void total_errors(ExtractReport& report);

/// Notes for how many matrices the error that was asked for does not hold: rounding the factors alone
/// can make more.
void note_missed_error(const ExtractRanks& ranks, ExtractReport& report);

/// What a finished matrix leaves to a later run, and back.
std::string entry_text(const ExtractedTensor& entry);
void read_entry(const std::string& text, ExtractedTensor& entry);

/// Everything in the options that the result depends on.
std::string options_text(const ExtractOptions& options);

}  // namespace eckart
