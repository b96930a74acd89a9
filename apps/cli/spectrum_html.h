// Spectra as a page: one file, without a request to anywhere.
#pragma once

#include "eckart/model/checkpoint_spectrum.h"

#include <string>

namespace eckart::cli {

/// `head` is the line that says what the model is.
std::string spectrum_html(const std::string& name, const std::string& head,
                          const CheckpointSpectrum& found);

}  // namespace eckart::cli
