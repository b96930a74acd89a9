// One shard of a merge: its tensors computed block by block, or copied. Included by the library
// alone.
#pragma once

#include "eckart/lora/bf16_merge.h"
#include "eckart/lora/matrix_update.h"
#include "eckart/lora/merge.h"
#include "eckart/lora/output_folder.h"
#include "eckart/lora/shard_output.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace eckart {

/// Writes the tensors of a plan that belong to one shard.
class ShardMerge {
 public:
  /// Makes or takes over the shard's file, at its whole size. Throws FileError.
  ShardMerge(const MergeSources& sources, const MergePlan& plan, std::size_t shard,
             OutputFolder& folder);
  ShardMerge(const ShardMerge&) = delete;
  ShardMerge& operator=(const ShardMerge&) = delete;
  ~ShardMerge();

  std::uint64_t tensor_bytes() const;
  /// Computes what is to be computed, copies the rest, and adds what it did to `report`. Calls
  /// `on_written` with numbers of bytes. Throws as merge_adapters.
  void run(MergeReport& report, const std::function<void(std::uint64_t)>& on_written);

 private:
  struct Buffers;
  // Rows of one tensor, written at one place.
  struct Block {
    RowRange range;
    std::uint64_t offset = 0;  // in the file
    std::uint64_t size = 0;
    DeltaStatistics statistics = {};
    std::string hash = {};
  };
  // A tensor while it is computed.
  struct Work {
    const PlannedTensor* tensor = nullptr;
    std::unique_ptr<MatrixUpdate<float>> update;
    std::vector<Bf16Merge> one_pass;  // one a matrix, where all is BF16; else empty
    std::vector<Block> blocks;
  };
  // Bytes of a tensor that lie in the base's file as they will in the result's.
  struct Copy {
    const PlannedTensor* tensor = nullptr;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t size = 0;
    Index n_nan = 0;
    Index n_infinite = 0;
  };
  // Tensors that are written together.
  struct Batch {
    std::vector<Work> works;
    std::vector<Copy> copies;
    std::uint64_t bytes = 0;
  };

  void add(const PlannedTensor& tensor, Batch& batch, MergeReport& report) const;
  void add_copy(const PlannedTensor& tensor, Batch& batch) const;
  void make(Copy& copy) const;
  std::vector<Block> blocks_of(const PlannedTensor& tensor) const;
  bool is_finished(const PlannedTensor& tensor, MergedTensor& finished) const;
  void write(Batch& batch, MergeReport& report);
  void compute(const Work& work, Block& block) const;
  bool compute_in_one_pass(const Work& work, Block& block, std::span<const std::byte> base,
                           std::span<std::byte> out) const;
  void compute_in_steps(const Work& work, Block& block, Buffers& values,
                        std::span<std::byte> out) const;
  void note_finished(const Work& work, MergeReport& report);

  class BufferPool;

  const MergeSources& sources_;
  const MergePlan& plan_;
  std::size_t shard_ = 0;
  OutputFolder& folder_;
  std::vector<const PlannedTensor*> tensors_;
  std::unique_ptr<ShardOutput> output_;
  std::unique_ptr<BufferPool> buffers_;
};

}  // namespace eckart
