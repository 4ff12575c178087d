#include "lib/parallel/copy_sums.h"

#include <utility>

namespace scaletrain::parallel {

CopySums::CopySums(const GradientExchange& exchange, const dist::Mesh& mesh)
    : group_(exchange.copies(mesh)),
      shards_(mesh.size(core::Axis::kShard)),
      compression_(make_compression(exchange.compress, exchange.seed, group_)) {}

void CopySums::add(std::vector<Slot> slots) {
  buckets_.push_back(slots.empty() ? -1 : used_++);
  if (compression_ && !slots.empty()) compression_->add(std::move(slots));
}

void CopySums::begin_step(std::int64_t step) {
  if (compression_) compression_->begin_step(step);
}

void CopySums::start(std::size_t block, const at::Tensor& flat) {
  if (group_.world_size() == 1) return;
  if (compression_) {
    const int bucket = buckets_[block];
    if (bucket < 0) return;
    begun_.push_back((*compression_->exchanges().now)[static_cast<std::size_t>(bucket)].get());
    begun_.back()->begin(flat.div_(shards_));
    return;
  }
  bytes_ += static_cast<std::int64_t>(flat.nbytes());
  pending_.push_back(group_.all_reduce_sum(flat, "gradients of the replicas"));
}

void CopySums::finish() {
  for (dist::Pending& one : pending_) one.wait();
  pending_.clear();
  for (BucketExchange* const one : begun_) one->go_on();
  for (BucketExchange* const one : begun_) one->finish();
  begun_.clear();
}

void CopySums::end_step(const at::Tensor& found_inf) {
  if (compression_) compression_->end_step(found_inf);
}

units::Shards CopySums::state() { return compression_ ? compression_->state() : units::Shards(); }

}  // namespace scaletrain::parallel
