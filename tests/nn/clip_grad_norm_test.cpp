#include "eckart/core/errors.h"
#include "eckart/nn/loss.h"

#include <cmath>
#include <vector>

#include "tests/linalg/worked_examples.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"
#include <gtest/gtest.h>

namespace eckart {
namespace {

using testing::has_elements;
using testing::is_near;
using testing::random_matrix;
using testing::random_tensor;
using testing::thrown_by;

TEST(ClipGradNorm, GivesTheWorkedExamples) {
  for (const testing::WorkedExample& example : testing::worked_examples("clip_grad_norm")) {
    std::vector<Tensor<double>> gradients;
    for (const auto& one : example.inputs.at("grads")) gradients.push_back(testing::tensor_of(one));
    const std::vector<TensorView<const double>> views(gradients.begin(), gradients.end());
    const ClippedGradients<double> clipped =
        clip_grad_norm(views, example.inputs.at("max_norm").get<double>());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(is_near(clipped.gradients[i], testing::tensor_of(example.expect.at(i)),
                          {.absolute = example.tolerance}));
    }
  }
}

TEST(ClipGradNorm, TakesOneNormOfAllGradients) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 2}, {2, 0}});  // length 3
  const Tensor<double> b = Tensor<double>::vector({4});
  const ClippedGradients<double> clipped = clip_grad_norm<double>({a, b}, 2.5);
  const Tensor<double> scalar(Shape{}, -4.0);
  EXPECT_EQ(clip_grad_norm<double>({a, scalar}, 2.5).norm, 5);
  EXPECT_EQ(clipped.norm, 5);
  EXPECT_EQ(clipped.factor, 0.5);
  EXPECT_TRUE(has_elements(clipped.gradients[0].view(), {0.5, 1, 1, 0}));
  EXPECT_TRUE(has_elements(clipped.gradients[1].view(), {2}));
}

TEST(ClipGradNorm, LeavesShortGradientsAsTheyAre) {
  const Tensor<float> a = random_matrix<float>(3, 5);
  const ClippedGradients<float> clipped = clip_grad_norm<float>({a}, 100);
  EXPECT_EQ(clipped.factor, 1);
  EXPECT_TRUE(is_near(clipped.gradients[0], a));
  EXPECT_EQ(clip_grad_norm<float>({}, 1).norm, 0);
  EXPECT_EQ(clip_grad_norm<float>({Tensor<float>({0, 3})}, 0).norm, 0);
}

TEST(ClipGradNorm, IsExactForHugeAndTinyGradients) {
  // Squares of these are beyond double.
  const Tensor<double> huge = Tensor<double>::vector({3e200, 4e200});
  const ClippedGradients<double> clipped = clip_grad_norm<double>({huge}, 1);
  EXPECT_DOUBLE_EQ(clipped.norm, 5e200);
  EXPECT_TRUE(
      is_near(clipped.gradients[0], Tensor<double>::vector({0.6, 0.8}), {.relative = 4 * 0x1p-52}));
  EXPECT_DOUBLE_EQ(clip_grad_norm<double>({Tensor<double>::vector({3e-200, 4e-200})}, 1).norm,
                   5e-200);
}

TEST(ClipGradNorm, TakesStridedViews) {
  const Tensor<float> base = random_tensor<float>({6, 4});
  const TensorView<const float> turned = base.view().transpose();
  const ClippedGradients<float> clipped = clip_grad_norm<float>({turned}, 1);
  EXPECT_TRUE(is_near(clipped.gradients[0],
                      clip_grad_norm<float>({Tensor<float>(turned)}, 1).gradients[0]));
}

TEST(ClipGradNorm, NamesWhatIsNotFinite) {
  const Tensor<double> a = Tensor<double>::matrix({{1, 2}});
  const Tensor<double> b = Tensor<double>::vector({0, std::nan("")});
  const std::string text = thrown_by<ArgumentError>([&] { clip_grad_norm<double>({a, b}, 1); });
  EXPECT_EQ(text.rfind("clip_grad_norm: gradient 1 has a NaN at (1)", 0), 0U) << text;
  EXPECT_EQ(thrown_by<ArgumentError>([&] { clip_grad_norm<double>({a}, -1); }),
            "clip_grad_norm: max_norm is -1, but it must be at least 0");
  EXPECT_EQ(
      thrown_by<ArgumentError>([&] { clip_grad_norm<double>({Tensor<double>({4}, 1.7e308)}, 1); }),
      "clip_grad_norm: the norm of all gradients together exceeds the range of double, but it "
      "must be finite");
}

}  // namespace
}  // namespace eckart
