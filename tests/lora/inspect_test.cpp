#include "eckart/lora/inspect.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/lora/adapter_files.h"
#include "tests/matchers.h"
#include <gtest/gtest.h>

namespace eckart::testing {
namespace {

constexpr std::string_view config =
    "{'peft_type': 'LORA', 'r': 2, 'lora_alpha': 4, "
    "'target_modules': ['q']}";

// Scale 2, A the identity, B diag(first, second).
std::vector<ModuleSpectrum> spectrum_of_diagonal(float first, float second) {
  const ScratchFolder folder;
  save_peft(folder.path(),
            {{"base_model.model.q.lora_A.weight", {{2, 2}, {1, 0, 0, 1}}},
             {"base_model.model.q.lora_B.weight", {{2, 2}, {first, 0, 0, second}}}},
            config);
  return inspect_adapter(open_adapter(folder.path()));
}

// Values of a few roundings of double.
constexpr Bound bound = {.relative = 1e-14};

TEST(InspectAdapter, GivesTheSingularValuesOfTheScaledDelta) {
  const ModuleSpectrum found = spectrum_of_diagonal(3, 4)[0];
  EXPECT_TRUE(is_near(found.values, Tensor<double>::vector({8, 6}), bound));
  EXPECT_NEAR(found.frobenius_norm, 10, 1e-13);
  EXPECT_NEAR(found.stable_rank.value(), 100.0 / 64, 1e-13);
  EXPECT_EQ(found.energy_ranks.value(), (std::array<Index, 3>{1, 2, 2}));
  EXPECT_FALSE(found.has_spike);
  EXPECT_EQ(found.parameters, 8);
}

TEST(InspectAdapter, ASpikeIsASigmaFiveTimesTheNext) {
  EXPECT_FALSE(spectrum_of_diagonal(4.9F, 1)[0].has_spike);
  EXPECT_TRUE(spectrum_of_diagonal(5.1F, 1)[0].has_spike);
  EXPECT_TRUE(spectrum_of_diagonal(1, 0)[0].has_spike);
}

TEST(InspectAdapter, ADeltaOfZeroHasNoRanks) {
  const ModuleSpectrum found = spectrum_of_diagonal(0, 0)[0];
  EXPECT_EQ(found.frobenius_norm, 0);
  EXPECT_FALSE(found.stable_rank.has_value());
  EXPECT_FALSE(found.effective_rank.has_value());
  EXPECT_FALSE(found.energy_ranks.has_value());
  EXPECT_FALSE(found.has_spike);
}

TEST(InspectAdapter, SquaresOfTheValuesNeitherOverflowNorVanish) {
  for (const float size : {1e-30F, 1e30F}) {
    const ModuleSpectrum found = spectrum_of_diagonal(3 * size, 4 * size)[0];
    EXPECT_NEAR(found.frobenius_norm / (10 * static_cast<double>(size)), 1, 1e-6);
    EXPECT_NEAR(found.stable_rank.value(), 100.0 / 64, 1e-6);
  }
}

TEST(InspectAdapter, TakesTheExpertsTogether) {
  const Adapter adapter = open_adapter(golden_adapter("experts"));
  const std::vector<ModuleSpectrum> found = inspect_adapter(adapter);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const AdapterModule& module = adapter.modules()[i];
    double squares = 0;
    for (Index expert = 0; expert < 3; ++expert) {
      const Tensor<double> delta = delta_of(adapter, module, expert);
      for (Index k = 0; k < delta.count(); ++k) squares += delta.data()[k] * delta.data()[k];
    }
    EXPECT_EQ(found[i].values.count(), 6);
    EXPECT_NEAR(found[i].frobenius_norm, std::sqrt(squares), 1e-12);
  }
}

}  // namespace
}  // namespace eckart::testing
