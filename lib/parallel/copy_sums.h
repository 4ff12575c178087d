// All-reduces the gradients of this rank's shards, block by block, over the data-parallel replicas
// that own the same shards: plain, or compressed (lib/parallel/compress/).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/compress/compression.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class CopySums {
 public:
  // `mesh` must outlive it.
  CopySums(const GradientExchange& exchange, const dist::Mesh& mesh);

  // Adds a block whose gradients lie at `slots`; an empty list: nothing to communicate.
  void add(std::vector<Slot> slots);
  void begin_step(std::int64_t step);
  // Starts to all-reduce `flat`, the gradients of block number `block`, already summed over the
  // shard axis; all ranks start the blocks in the same order. After finish() it is divisor() times
  // the mean over all data-parallel ranks.
  void start(std::size_t block, const at::Tensor& flat);
  void finish();
  void end_step(const at::Tensor& found_inf);

  // Compressed gradients are divided before the sum, so that fp16 does not overflow.
  int divisor() const { return compression_ ? 1 : shards_ * group_.world_size(); }
  std::int64_t bytes() const { return bytes_ + (compression_ ? compression_->bytes() : 0); }
  units::Shards state();

 private:
  dist::Group& group_;
  int shards_;
  std::unique_ptr<Compression> compression_;  // null: plain all-reduce
  std::vector<int> buckets_;                  // exchange of each block; -1: this rank has none
  int used_ = 0;                              // number of exchanges
  std::vector<dist::Pending> pending_;        // plain all-reduces under way
  std::vector<BucketExchange*> begun_;        // compressed exchanges under way
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::parallel
