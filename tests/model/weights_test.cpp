#include "eckart/model/weights.h"

#include "eckart/core/errors.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/scratch_folder.h"
#include "tests/matchers.h"
#include "tests/thrown.h"

namespace eckart {
namespace {

using testing::is_near;
using testing::thrown_by;

// A file of tensors given by their bytes, opened.
class Stored {
 public:
  template <class T>
  Stored& add(std::string name, Dtype dtype, Shape shape, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    bytes_.push_back(std::move(bytes));
    plans_.push_back({std::move(name), dtype, std::move(shape)});
    return *this;
  }

  const Checkpoint& open() {
    std::vector<TensorBytes> all;
    for (std::size_t i = 0; i < plans_.size(); ++i) all.push_back({plans_[i], bytes_[i]});
    save_safetensors(folder_ / "model.safetensors", all);
    checkpoint_.emplace(open_checkpoint(folder_.path()));
    tensors_ = logical_tensors(*checkpoint_);
    return *checkpoint_;
  }

  const LogicalTensor& tensor(const std::string& name) {
    for (const LogicalTensor& one : tensors_) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors_.front();
  }
  Tensor<float> load(const std::string& name) { return load_weight(*checkpoint_, tensor(name)); }

 private:
  testing::ScratchFolder folder_;
  std::vector<TensorPlan> plans_;
  std::vector<std::vector<std::byte>> bytes_;
  std::optional<Checkpoint> checkpoint_;
  std::vector<LogicalTensor> tensors_;
};

// F8_E4M3: 0x38 is 1, 0x40 is 2, 0x44 is 3, 0xb8 is -1.
constexpr std::uint8_t one = 0x38, two = 0x40, three = 0x44, minus_one = 0xb8;

TEST(Weights, EveryFloatFormatReadsAsItsNumbers) {
  Stored file;
  file.add<float>("a", Dtype::f32, {2}, {1.5F, -2})
      .add<double>("b", Dtype::f64, {2}, {1.5, -2})
      .add<std::uint16_t>("c", Dtype::f16, {2}, {0x3e00, 0xc000})
      .add<std::uint16_t>("d", Dtype::bf16, {2}, {0x3fc0, 0xc000})
      .add<std::uint8_t>("e", Dtype::f8_e4m3, {2}, {0x3c, 0xc0})
      .add<std::uint8_t>("f", Dtype::f8_e5m2, {2}, {0x3e, 0xc0});
  file.open();
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_EQ(why_unreadable(file.tensor(name)), "") << name;
    EXPECT_TRUE(is_near(file.load(name), Tensor<float>::vector({1.5F, -2}))) << name;
  }
}

TEST(Weights, RowsAreThoseAskedFor) {
  Stored file;
  file.add<float>("a", Dtype::f32, {3, 2}, {1, 2, 3, 4, 5, 6})
      .add<float>("v", Dtype::f32, {3}, {7, 8, 9})
      .add<float>("cube", Dtype::f32, {2, 1, 2}, {1, 2, 3, 4})
      .add<float>("scalar", Dtype::f32, {}, {5});
  const Checkpoint& checkpoint = file.open();
  const auto rows = [&](const char* name, Index first, Index n) {
    return load_weight_rows(checkpoint, file.tensor(name), first, n);
  };
  EXPECT_TRUE(is_near(rows("a", 1, 2), Tensor<float>::matrix({{3, 4}, {5, 6}})));
  EXPECT_TRUE(is_near(rows("v", 2, 1), Tensor<float>::matrix({{9}})));
  EXPECT_TRUE(is_near(rows("cube", 1, 1), Tensor<float>::matrix({{3, 4}})));
  EXPECT_TRUE(is_near(rows("scalar", 0, 1), Tensor<float>::matrix({{5}})));
  EXPECT_EQ(rows("a", 3, 0).shape(), Shape({0, 2}));
  EXPECT_EQ(file.load("cube").shape(), Shape({2, 1, 2}));
  EXPECT_EQ(thrown_by<ArgumentError>([&] { rows("a", 2, 2); }),
            "load_weight: a has 3 rows, but 2 from row 2 on are asked for");
}

TEST(Weights, OneScaleIsForAll) {
  Stored file;
  file.add<std::uint8_t>("q.weight", Dtype::f8_e4m3, {2, 2}, {one, two, three, minus_one})
      .add<float>("q.weight_scale", Dtype::f32, {}, {0.5F})
      .add<float>("q.input_scale", Dtype::f32, {}, {7});
  file.open();
  EXPECT_TRUE(is_near(file.load("q.weight"), Tensor<float>::matrix({{0.5F, 1}, {1.5F, -0.5F}})));
}

TEST(Weights, AScaleARowIsAColumnOrAVector) {
  for (const Shape& scale : {Shape({2, 1}), Shape({2})}) {
    Stored file;
    file.add<std::uint8_t>("q.weight", Dtype::f8_e4m3, {2, 2}, {one, two, three, minus_one})
        .add<std::uint16_t>("q.weight_scale", Dtype::bf16, scale, {0x3f00, 0x4000});  // 0.5, 2
    const Checkpoint& checkpoint = file.open();
    EXPECT_TRUE(is_near(file.load("q.weight"), Tensor<float>::matrix({{0.5F, 1}, {6, -2}})));
    EXPECT_TRUE(is_near(load_weight_rows(checkpoint, file.tensor("q.weight"), 1, 1),
                        Tensor<float>::matrix({{6, -2}})));
  }
}

TEST(Weights, ScalesOfBlocksReachOverLastOnesCutShort) {
  const Index rows = 130, columns = 257;  // 2 x 3 blocks of 128
  Stored file;
  file.add<std::uint8_t>("q.weight", Dtype::f8_e4m3, {rows, columns},
                         std::vector<std::uint8_t>(static_cast<std::size_t>(rows * columns), one))
      .add<float>("q.weight_scale_inv", Dtype::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Checkpoint& checkpoint = file.open();
  const Tensor<float> whole = file.load("q.weight");
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      ASSERT_EQ(whole(i, j), static_cast<float>(1 + i / 128 * 3 + j / 128)) << i << ' ' << j;
    }
  }
  const Tensor<float> last = load_weight_rows(checkpoint, file.tensor("q.weight"), 127, 2);
  EXPECT_EQ(last(0, 256), 3);
  EXPECT_EQ(last(1, 0), 4);
}

TEST(Weights, ExpertsHaveScalesOfTheirOwn) {
  Stored file;
  const std::vector<std::uint8_t> ones(12, one);
  file.add("experts", Dtype::f8_e4m3, {2, 3, 2}, ones)
      .add<float>("experts_scale", Dtype::f32, {2}, {2, 3})
      .add("rows", Dtype::f8_e4m3, {2, 3, 2}, ones)
      .add<float>("rows_scale_inv", Dtype::f32, {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Checkpoint& checkpoint = file.open();
  EXPECT_TRUE(is_near(load_weight_rows(checkpoint, file.tensor("experts"), 1, 1),
                      Tensor<float>::matrix({{3, 3, 3, 3, 3, 3}})));
  EXPECT_TRUE(is_near(load_weight_rows(checkpoint, file.tensor("rows"), 1, 1),
                      Tensor<float>::matrix({{4, 4, 5, 5, 6, 6}})));
  EXPECT_EQ(file.load("rows")(0, 2, 1), 3);
}

TEST(Weights, AMatrixWhoseScaleIsMissingIsNamed) {
  Stored stored;
  stored.add<std::uint8_t>("a.weight", Dtype::f8_e4m3, {1, 2}, {one, two})
      .add<float>("a.weight_scale_inv", Dtype::f32, {1, 1}, {0.5F})
      .add<std::uint8_t>("b.weight", Dtype::f8_e4m3, {1, 2}, {one, two});
  const Checkpoint& checkpoint = stored.open();
  const std::string message =
      thrown_by<FormatError>([&] { check_scales(checkpoint, logical_tensors(checkpoint)); });
  EXPECT_NE(message.find("tensor \"b.weight\": it is F8_E4M3 without a scale, but a.weight and "
                         "others have one beside them"),
            std::string::npos)
      << message;
}

TEST(Weights, MatricesOfF8WithoutAnyScaleStandForThemselves) {
  Stored stored;
  stored.add<std::uint8_t>("a.weight", Dtype::f8_e4m3, {1, 2}, {one, two});
  const Checkpoint& checkpoint = stored.open();
  EXPECT_NO_THROW(check_scales(checkpoint, logical_tensors(checkpoint)));
}

TEST(Weights, PackedOrUnknownStorageIsRefusedByName) {
  Stored file;
  file.add<std::int8_t>("a.weight", Dtype::i8, {1, 2}, {1, 2})
      .add<float>("a.weight_scale", Dtype::f32, {1}, {1})
      .add<std::int64_t>("ids", Dtype::i64, {1}, {1})
      .add<std::uint8_t>("f.weight", Dtype::f8_e4m3, {2, 3}, std::vector<std::uint8_t>(6, one))
      .add<float>("f.weight_scale", Dtype::f32, {5}, {1, 1, 1, 1, 1})
      .add<std::uint8_t>("z.weight", Dtype::f8_e4m3, {1, 1}, {one})
      .add<float>("z.weight_scale", Dtype::f32, {1}, {1})
      .add<float>("z.weight_zero_point", Dtype::f32, {1}, {1});
  file.open();
  EXPECT_EQ(why_unreadable(file.tensor("a.weight")), "quantized: I8 with one scale");
  EXPECT_EQ(why_unreadable(file.tensor("ids")), "stored as I64, which is not read as numbers");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { file.load("a.weight"); }),
            "load_weight: a.weight can't be read: quantized: I8 with one scale");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { file.load("f.weight"); }),
            "load_weight: f.weight is 2x3 and its scales f.weight_scale are 5, but they must be "
            "one for all, one a row or one a block");
  EXPECT_EQ(thrown_by<ArgumentError>([&] { file.load("z.weight"); }),
            "load_weight: z.weight is F8_E4M3 with one scale, but what z.weight_zero_point means "
            "for its values is not known");
}

}  // namespace
}  // namespace eckart
