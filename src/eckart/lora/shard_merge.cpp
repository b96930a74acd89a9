#include "eckart/lora/shard_merge.h"

#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/io/findings.h"
#include "eckart/io/hash.h"
#include "eckart/io/narrow.h"
#include "eckart/io/scan.h"
#include "eckart/io/widen.h"
#include "eckart/lora/row_blocks.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

namespace eckart {
namespace {

// Of a result's bytes: so much is lost at most when a run is killed, and so many matrices have
// their factors in memory.
constexpr std::uint64_t batch_bytes = std::uint64_t{64} << 20;
// Elements that one thread computes and writes at once.
constexpr Index written_elements = Index{1} << 18;
constexpr std::uint64_t copied_bytes = std::uint64_t{8} << 20;

std::vector<TensorPlan> plans_of(const std::vector<const PlannedTensor*>& tensors) {
  std::vector<TensorPlan> plans;
  for (const PlannedTensor* tensor : tensors) {
    plans.push_back({tensor->name, tensor->dtype, tensor->shape});
  }
  return plans;
}

// Readers ask for the format.
std::map<std::string, std::string> metadata_of(const SafetensorsFile& shard) {
  std::map<std::string, std::string> metadata = shard.metadata();
  metadata.emplace("format", "pt");
  return metadata;
}

std::string place_text(const PlannedTensor& tensor, Index element) {
  std::string text;
  for (Index axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(element % tensor.shape.size(axis)) + (text.empty() ? "" : ", ") + text;
    element /= tensor.shape.size(axis);
  }
  return "(" + text + ")";
}

bool is_float(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64:
    case Dtype::f32:
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f8_e4m3:
    case Dtype::f8_e5m2:
      return true;
    default:
      return false;
  }
}

void grow(Tensor<float>& tensor, Index n) {
  if (tensor.count() < n) tensor = Tensor<float>::uninitialized({n});
}

// Values of a block that is not finite.
struct BlockValues {
  const Tensor<float>& base;
  const Tensor<float>& wanted;
  const Tensor<float>& realised;
};

// Says which value is none, and why.
[[noreturn]] void fail_not_finite(const PlannedTensor& tensor, const RowRange& range,
                                  const BlockValues& values) {
  const Index first = (range.matrix * tensor.rows + range.first) * tensor.columns;
  for (Index i = 0; i < range.n * tensor.columns; ++i) {
    if (std::isfinite(values.realised(i))) continue;
    const std::string place = place_text(tensor, first + i);
    if (!std::isfinite(values.base(i))) {
      throw_argument_error("merge: " + printable(tensor.name) + " of the base is " +
                               (std::isnan(values.base(i)) ? "NaN" : "infinite") + " at " + place,
                           "`eckart check BASE --values` lists all such values");
    }
    if (!std::isfinite(values.wanted(i))) {
      throw_argument_error("merge: base and delta of " + printable(tensor.name) + " at " + place +
                           " have no finite sum in float");
    }
    throw_argument_error("merge: " + printable(tensor.name) + " would be " +
                             std::to_string(values.wanted(i)) + " at " + place +
                             ", but that is too large for " + std::string(to_string(tensor.dtype)),
                         "`--dtype BF16` or `--dtype F32` reach further");
  }
  throw_argument_error("merge: the delta of " + printable(tensor.name) +
                       " is too large to measure");
}

nlohmann::json to_json(const DeltaStatistics& s) {
  return {s.base_squares, s.wanted_squares, s.error_squares, s.n_wanted, s.n_unchanged};
}

DeltaStatistics statistics_of(const nlohmann::json& json) {
  return {json.at(0), json.at(1), json.at(2), json.at(3), json.at(4)};
}

std::string hash_of_all(const std::string& hashes) {
  return hash_of(std::as_bytes(std::span(hashes)));
}

}  // namespace

// What a thread needs for a block.
struct ShardMerge::Buffers {
  Tensor<float> base, delta, wanted, realised;
  std::vector<std::byte> out;

  // Of a block that is computed in steps.
  void hold(Index n) {
    for (Tensor<float>* tensor : {&base, &delta, &wanted, &realised}) grow(*tensor, n);
  }
};

// Buffers that are used again: the system zeroes the pages of new ones, which took a sixth of the
// time.
class ShardMerge::BufferPool {
 public:
  std::unique_ptr<Buffers> take(std::uint64_t out_bytes) {
    std::unique_ptr<Buffers> taken;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        taken = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!taken) taken = std::make_unique<Buffers>();
    if (taken->out.size() < out_bytes) taken->out.resize(out_bytes);
    return taken;
  }
  void give_back(std::unique_ptr<Buffers> taken) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(taken));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Buffers>> free_;
};

ShardMerge::~ShardMerge() = default;

ShardMerge::ShardMerge(const MergeSources& sources, const MergePlan& plan, std::size_t shard,
                       OutputFolder& folder)
    : sources_(sources),
      plan_(plan),
      shard_(shard),
      folder_(folder),
      buffers_(std::make_unique<BufferPool>()) {
  for (const PlannedTensor& tensor : plan.tensors) {
    if (tensor.shard == shard) tensors_.push_back(&tensor);
  }
  output_ =
      std::make_unique<ShardOutput>(folder.result_path(plan.shards[shard]), plans_of(tensors_),
                                    metadata_of(sources.base.shards()[shard]));
  // In the order of the file: what is copied then lies together.
  std::sort(tensors_.begin(), tensors_.end(), [&](const auto* a, const auto* b) {
    return output_->place(a->name).begin < output_->place(b->name).begin;
  });
}

std::uint64_t ShardMerge::tensor_bytes() const {
  std::uint64_t bytes = 0;
  for (const PlannedTensor* tensor : tensors_) bytes += output_->place(tensor->name).bytes();
  return bytes;
}

void ShardMerge::run(MergeReport& report, const std::function<void(std::uint64_t)>& on_written) {
  Batch batch;
  const auto flush = [&] {
    write(batch, report);
    on_written(batch.bytes);
    batch = {};
  };
  for (const PlannedTensor* tensor : tensors_) {
    batch.bytes += output_->place(tensor->name).bytes();
    add(*tensor, batch, report);
    if (batch.bytes >= batch_bytes) flush();
  }
  flush();
}

void ShardMerge::add(const PlannedTensor& tensor, Batch& batch, MergeReport& report) const {
  if (tensor.fate == TensorFate::copied) {
    ++report.n_copied;
    add_copy(tensor, batch);
    return;
  }
  MergedTensor finished;
  if (is_finished(tensor, finished)) {
    ++report.n_resumed;
    report.tensors.push_back(std::move(finished));
    return;
  }
  Work work{.tensor = &tensor,
            .update = std::make_unique<MatrixUpdate<float>>(sources_, tensor),
            .one_pass = {},
            .blocks = blocks_of(tensor)};
  const bool is_bf16 = tensor.saved == nullptr && !tensor.base->is_quantized &&
                       tensor.stored->dtype == Dtype::bf16 && tensor.dtype == Dtype::bf16;
  if (is_bf16 && !work.update->is_empty() && !work.update->is_dora()) {
    for (Index matrix = 0; matrix < tensor.n_matrices; ++matrix) {
      work.one_pass.emplace_back(work.update->left(matrix), work.update->right_t(matrix));
    }
  }
  batch.works.push_back(std::move(work));
}

void ShardMerge::add_copy(const PlannedTensor& tensor, Batch& batch) const {
  const StoredTensor& place = output_->place(tensor.name);
  for (std::uint64_t done = 0; done < place.bytes(); done += copied_bytes) {
    batch.copies.push_back({.tensor = &tensor,
                            .from = tensor.stored->begin + done,
                            .to = place.begin + done,
                            .size = std::min(copied_bytes, place.bytes() - done)});
  }
}

// Looked through before it is copied, when it comes into the cache that the copy then finds it in.
void ShardMerge::make(Copy& copy) const {
  const SafetensorsFile& shard = sources_.base.shards()[shard_];
  if (is_float(copy.tensor->stored->dtype)) {
    const ValueScan scan = scan_file_values(shard.file(), copy.tensor->stored->dtype, copy.from,
                                            copy.from + copy.size);
    copy.n_nan = static_cast<Index>(scan.n_nan);
    copy.n_infinite = static_cast<Index>(scan.n_infinite);
  }
  output_->copy(copy.to, shard.path(), copy.from, copy.size);
}

std::vector<ShardMerge::Block> ShardMerge::blocks_of(const PlannedTensor& tensor) const {
  std::vector<Block> blocks;
  if (tensor.columns == 0) return blocks;
  const Index step = std::max<Index>(1, written_elements / tensor.columns);
  const auto element = static_cast<std::uint64_t>(bits(tensor.dtype)) / 8;
  std::uint64_t offset = output_->place(tensor.name).begin;
  for (Index matrix = 0; matrix < tensor.n_matrices; ++matrix) {
    for (Index first = 0; first < tensor.rows; first += step) {
      const Index n = std::min(step, tensor.rows - first);
      const std::uint64_t size = static_cast<std::uint64_t>(n * tensor.columns) * element;
      blocks.push_back({.range = {matrix, first, n}, .offset = offset, .size = size});
      offset += size;
    }
  }
  return blocks;
}

// Whether a run that was cut off has written this tensor: its bytes must have the hash it noted.
bool ShardMerge::is_finished(const PlannedTensor& tensor, MergedTensor& finished) const {
  if (!folder_.has_part(tensor.name)) return false;
  const nlohmann::json note = nlohmann::json::parse(folder_.part_note(tensor.name));
  std::string hashes;
  std::vector<std::byte> bytes;
  for (const Block& block : blocks_of(tensor)) {
    bytes.resize(block.size);
    if (!output_->read(block.offset, bytes)) return false;
    hashes += hash_of(bytes);
  }
  if (note.at("hash") != hash_of_all(hashes)) return false;
  finished = {tensor.name, tensor.fate, tensor.dtype, tensor.shape,
              statistics_of(note.at("statistics"))};
  return true;
}

void ShardMerge::write(Batch& batch, MergeReport& report) {
  std::vector<std::function<void()>> jobs;
  // Copies wait for the disk and blocks for the processor: in turn they keep both busy.
  for (Copy& copy : batch.copies) {
    jobs.emplace_back([this, &copy] { make(copy); });
  }
  for (Work& work : batch.works) {
    for (Block& block : work.blocks) {
      jobs.emplace_back([this, &work, &block] { compute(work, block); });
    }
  }
  parallel_for(static_cast<Index>(jobs.size()), 1, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) jobs[static_cast<std::size_t>(i)]();
  });
  for (const Work& work : batch.works) note_finished(work, report);
  for (const Copy& copy : batch.copies) {
    if (copy.n_nan + copy.n_infinite == 0) continue;
    if (report.not_finite.empty() || report.not_finite.back().name != copy.tensor->name) {
      report.not_finite.push_back({copy.tensor->name, 0, 0});
    }
    report.not_finite.back().n_nan += copy.n_nan;
    report.not_finite.back().n_infinite += copy.n_infinite;
  }
}

void ShardMerge::compute(const Work& work, Block& block) const {
  const PlannedTensor& tensor = *work.tensor;
  const MappedFile& file = sources_.base.shards()[shard_].file();
  const bool is_stored = tensor.saved == nullptr && !tensor.base->is_quantized;
  const auto element =
      static_cast<std::uint64_t>(bits(is_stored ? tensor.stored->dtype : Dtype::u8)) / 8;
  const Index first = (block.range.matrix * tensor.rows + block.range.first) * tensor.columns;
  const std::uint64_t begin = tensor.stored->begin + static_cast<std::uint64_t>(first) * element;
  const std::uint64_t end =
      begin + static_cast<std::uint64_t>(block.range.n * tensor.columns) * element;
  if (is_stored) file.prefetch(begin, end);

  std::unique_ptr<Buffers> taken = buffers_->take(block.size);
  const std::span<std::byte> out = std::span(taken->out).first(block.size);
  const bool is_done =
      !work.one_pass.empty() &&
      compute_in_one_pass(work, block, file.bytes().subspan(begin, end - begin), out);
  if (!is_done) compute_in_steps(work, block, *taken, out);
  block.hash = hash_of(out);
  output_->write(block.offset, out);
  buffers_->give_back(std::move(taken));
  if (is_stored) file.release(begin, end);
}

// False where a value is not finite: in steps it is found which.
bool ShardMerge::compute_in_one_pass(const Work& work, Block& block,
                                     std::span<const std::byte> base,
                                     std::span<std::byte> out) const {
  const Bf16Merge& merge = work.one_pass[static_cast<std::size_t>(block.range.matrix)];
  block.statistics = merge.run(block.range.first, block.range.n, base, out);
  return std::isfinite(block.statistics.error_squares);
}

void ShardMerge::compute_in_steps(const Work& work, Block& block, Buffers& values,
                                  std::span<std::byte> out) const {
  const PlannedTensor& tensor = *work.tensor;
  const Index step = std::min(rows_per_block(tensor.columns), block.range.n);
  const std::size_t row_bytes = out.size() / static_cast<std::size_t>(block.range.n);
  values.hold(step * tensor.columns);
  block.statistics = {};
  for (Index row = 0; row < block.range.n; row += step) {
    const RowRange range{block.range.matrix, block.range.first + row,
                         std::min(step, block.range.n - row)};
    const Index n = range.n * tensor.columns;
    const auto count = static_cast<std::size_t>(n);
    read_rows(sources_, tensor, range, values.base.data());
    if (work.update->is_empty()) {
      std::fill_n(values.delta.data(), n, 0.0f);
      std::copy_n(values.base.data(), n, values.wanted.data());
    } else {
      work.update->apply(range, values.base.data(), values.wanted.data(), values.delta.data());
    }
    const std::span<std::byte> bytes = out.subspan(static_cast<std::size_t>(row) * row_bytes,
                                                   static_cast<std::size_t>(range.n) * row_bytes);
    narrow(tensor.dtype, {values.wanted.data(), count}, bytes);
    widen<float>(tensor.dtype, bytes, {values.realised.data(), count});
    const DeltaStatistics statistics =
        delta_statistics(n, values.base.data(), values.delta.data(), values.realised.data());
    if (!std::isfinite(statistics.error_squares)) {
      fail_not_finite(tensor, range, {values.base, values.wanted, values.realised});
    }
    block.statistics.add(statistics);
  }
}

void ShardMerge::note_finished(const Work& work, MergeReport& report) {
  const PlannedTensor& tensor = *work.tensor;
  DeltaStatistics statistics;
  std::string hashes;
  for (const Block& block : work.blocks) {
    statistics.add(block.statistics);
    hashes += block.hash;
  }
  const nlohmann::json note = {{"hash", hash_of_all(hashes)}, {"statistics", to_json(statistics)}};
  folder_.note_part(tensor.name, note.dump());
  report.tensors.push_back({tensor.name, tensor.fate, tensor.dtype, tensor.shape, statistics});
}

}  // namespace eckart
