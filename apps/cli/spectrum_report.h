// What `eckart spectrum` has found, and its text.
#pragma once

#include "eckart/linalg/spectrum.h"
#include "eckart/model/checkpoint_spectrum.h"

#include <string>
#include <vector>

namespace eckart::cli {

/// `12.3`, `0.00123`, `1.2e-09`: four figures.
std::string figure(double value);
/// `12.3`, or `~12.3 +- 0.4` where it was estimated.
std::string with_error(const Estimate& estimate);
/// What stands out in a matrix, a sentence each: NaN, outliers, values that are not resolved.
std::vector<std::string> notes_of(const Spectrum& spectrum);

/// The table, a line a matrix; with the details and the drawn spectrum of each where `details`.
std::string spectrum_text(const std::string& head, const CheckpointSpectrum& found, bool details);

/// Singular values against their rank, on a logarithmic scale, with the Marchenko-Pastur edge:
/// `width` x `height` letters of Braille dots and the scale at the left. Empty where no value is
/// above 0.
std::string drawn_spectrum(const Spectrum& spectrum, int width, int height);

}  // namespace eckart::cli
