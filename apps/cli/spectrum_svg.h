// Drawings of a spectrum as SVG, coloured by the classes of the page that they stand in.
#pragma once

#include "eckart/linalg/spectrum.h"

#include <string>

namespace eckart::cli {

/// Singular values against their rank on a logarithmic scale, with the range of the
/// Marchenko-Pastur bulk and the fitted power law. Empty where no value is above 0.
std::string values_svg(const Spectrum& spectrum);
/// How many singular values lie where. Empty where there is no density.
std::string density_svg(const Spectrum& spectrum);
/// The curve alone, as small as a word.
std::string spark_svg(const Spectrum& spectrum);

}  // namespace eckart::cli
