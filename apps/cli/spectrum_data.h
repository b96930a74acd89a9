// Spectra for other programs.
#pragma once

#include "eckart/model/checkpoint_spectrum.h"

#include <string>

#include "json_output.h"

namespace eckart::cli {

Json spectrum_json(const std::string& name, const CheckpointSpectrum& found);
/// A header and a line a matrix; an absent figure is empty.
std::string spectrum_csv(const CheckpointSpectrum& found);

}  // namespace eckart::cli
