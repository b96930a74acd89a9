#include "eckart/model/stored_matrix.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/narrow.h"
#include "eckart/linalg/matmul.h"
#include "eckart/model/weights.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/random_tensor.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::is_near;
using testing::thrown_by;

// A matrix in a file, in any dtype that numbers are narrowed to.
class MatrixFile {
 public:
  MatrixFile(const Tensor<float>& matrix, Dtype dtype) {
    const auto n = static_cast<std::size_t>(matrix.count());
    std::vector<std::byte> bytes(n * static_cast<std::size_t>(bits(dtype) / 8));
    if (dtype == Dtype::f32) {
      std::memcpy(bytes.data(), matrix.data(), bytes.size());
    } else {
      narrow(dtype, std::span(matrix.data(), n), bytes);
    }
    save_safetensors(folder_ / "model.safetensors",
                     {{{"w", dtype, matrix.shape().without_names()}, bytes}});
    checkpoint_ = std::make_shared<const Checkpoint>(open_checkpoint(folder_.path()));
    tensors_ = logical_tensors(*checkpoint_);
  }
  StoredMatrix matrix(bool input_first) const { return {checkpoint_, tensors_[0], input_first}; }
  Tensor<float> widened() const { return load_weight(*checkpoint_, tensors_[0]); }

 private:
  testing::ScratchFolder folder_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::vector<LogicalTensor> tensors_;
};

// d_in products, each with a rounding, added in any order: gamma_(d_in) sum |x_i w_i| an element,
// here at most d_in eps times the product of the magnitudes (Higham, section 3.1).
testing::Bound product_bound(const Tensor<float>& x, const Tensor<float>& w) {
  double largest_x = 0, largest_w = 0;
  for (Index i = 0; i < x.count(); ++i) {
    largest_x = std::max(largest_x, std::abs(static_cast<double>(x.data()[i])));
  }
  for (Index i = 0; i < w.count(); ++i) {
    largest_w = std::max(largest_w, std::abs(static_cast<double>(w.data()[i])));
  }
  const double d_in = static_cast<double>(x.size(1));
  constexpr double eps = 0x1p-23;
  return {.absolute = (d_in + 1) * eps * d_in * largest_x * largest_w};
}

struct Sizes {
  Index n_tokens, d_in, d_out;
};

TEST(StoredMatrix, MultipliesAsTheWidenedMatrixInEveryDtypeAndOrientation) {
  // One token, a few, and many; sizes around the pieces of 256 tokens and 1024 columns.
  const std::vector<Sizes> all = {{1, 1, 1},    {1, 7, 5},   {1, 300, 1100}, {4, 33, 17},
                                  {5, 1, 1},    {5, 33, 17}, {9, 130, 70},   {300, 40, 30},
                                  {6, 20, 530}, {2, 64, 1}};
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f8_e4m3}) {
    for (const Sizes& s : all) {
      for (const bool input_first : {false, true}) {
        const Shape shape = input_first ? Shape{s.d_in, s.d_out} : Shape{s.d_out, s.d_in};
        const MatrixFile file(testing::random_tensor<float>(shape, 1), dtype);
        const Tensor<float> x = testing::random_tensor<float>({s.n_tokens, s.d_in}, 2);
        const Tensor<float> w = file.widened();
        const Tensor<float> expected =
            input_first ? matmul(x.view(), w.view()) : matmul(x.view(), w.view().transpose());
        const Tensor<float> actual = linear(x.view(), file.matrix(input_first));
        EXPECT_TRUE(is_near(actual, expected, product_bound(x, w)))
            << to_string(dtype) << ' ' << s.n_tokens << ' ' << s.d_in << ' ' << s.d_out << ' '
            << input_first;
      }
    }
  }
}

TEST(StoredMatrix, ReadsAnyStridesOfTheTokens) {
  const MatrixFile file(Tensor<float>::matrix({{1, 2}, {3, 4}, {5, 6}}), Dtype::bf16);
  const Tensor<float> x = Tensor<float>::matrix({{1, 0}, {2, 1}});
  EXPECT_TRUE(is_near(linear(x.view().transpose(), file.matrix(false)),
                      Tensor<float>::matrix({{5, 11, 17}, {2, 4, 6}})));
}

TEST(StoredMatrix, OfNoTokensGivesNoRows) {
  const MatrixFile file(Tensor<float>::matrix({{1, 2}, {3, 4}, {5, 6}}), Dtype::f32);
  for (const bool input_first : {false, true}) {
    const StoredMatrix w = file.matrix(input_first);
    const Tensor<float> y = linear(Tensor<float>({0, w.n_inputs()}).view(), w);
    EXPECT_EQ(y.shape().sizes(), (std::vector<Index>{0, w.n_outputs()}));
  }
}

TEST(StoredMatrix, GivesTheSameBitsForEveryNumberOfThreads) {
  const Tensor<float> w = testing::random_tensor<float>({700, 600}, 3);
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const MatrixFile file(w, dtype);
    for (const Index n_tokens : {1, 40}) {
      for (const bool input_first : {false, true}) {
        const StoredMatrix matrix = file.matrix(input_first);
        const Tensor<float> x = testing::random_tensor<float>({n_tokens, matrix.n_inputs()}, 4);
        set_thread_count(1);
        const Tensor<float> one = linear(x.view(), matrix);
        set_thread_count(3);
        const Tensor<float> three = linear(x.view(), matrix);
        set_thread_count(0);
        EXPECT_TRUE(is_near(one, three)) << to_string(dtype) << n_tokens << input_first;
      }
    }
  }
}

TEST(StoredMatrix, GathersRows) {
  const MatrixFile file(Tensor<float>::matrix({{1, 2}, {3, 4}, {5, 6}}), Dtype::f16);
  EXPECT_TRUE(is_near(gather_rows(file.matrix(false), {2, 0, 2}),
                      Tensor<float>::matrix({{5, 6}, {1, 2}, {5, 6}})));
  EXPECT_EQ(thrown_by<ArgumentError>([&] {
              gather_rows(file.matrix(false), {0, 3});
            }),
            "gather_rows: row 3 of w, but it has 3 rows");
}

TEST(StoredMatrix, RefusesTokensOfAnotherWidth) {
  const MatrixFile file(Tensor<float>::matrix({{1, 2}, {3, 4}, {5, 6}}), Dtype::f32);
  EXPECT_EQ(thrown_by<ShapeError>([&] {
              linear(Tensor<float>({1, 3}).view(), file.matrix(false));
            }),
            "linear: x is 1x3, but w takes 2 columns");
}

TEST(StoredMatrix, RefusesWhatIsNoMatrixOfNumbers) {
  const MatrixFile vector(Tensor<float>::vector({1, 2}), Dtype::f32);
  EXPECT_EQ(thrown_by<ArgumentError>([&] { vector.matrix(false); }),
            "stored matrix: w is 2, but must be a matrix");
}

}  // namespace
}  // namespace eckart
