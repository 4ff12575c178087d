// Gradients of what a rank owns, block by block, added up with those of the ranks that own the same
// elements: as they are, or compressed (lib/parallel/compress/).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/dist/group.h"
#include "lib/parallel/compress/compression.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class CopySums {
 public:
  // The mesh outlives it.
  CopySums(const GradientExchange& exchange, const dist::Mesh& mesh);

  // One block more, whose gradients lie at `slots`; without any there is nothing to compress.
  void add(std::vector<Slot> slots);
  void begin_step(std::int64_t step);
  // Begins to exchange `flat`, the gradients of block number `block`, which are sums over the shard
  // axis; all ranks take the blocks in the same order. From finish() on it is divisor() times the
  // mean over all ranks whose gradients are added up.
  void start(std::size_t block, const at::Tensor& flat);
  void finish();
  void end_step(const at::Tensor& found_inf);

  // Compressed sums are divided before they are added, so that halves do not overflow.
  int divisor() const { return compression_ ? 1 : shards_ * group_.world_size(); }
  std::int64_t bytes() const { return bytes_ + (compression_ ? compression_->bytes() : 0); }
  std::map<std::string, at::Tensor> state();

 private:
  dist::Group& group_;
  int shards_;
  std::unique_ptr<Compression> compression_;  // null: as they are
  std::vector<int> buckets_;                  // by block its exchange; -1: this rank has none
  int used_ = 0;                              // of those that it has
  std::vector<dist::Pending> pending_;        // under way, of plain sums
  std::vector<BucketExchange*> begun_;        // the same of others
  std::int64_t bytes_ = 0;
};

}  // namespace scaletrain::parallel
