#include "lib/parallel/sharded.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "lib/core/error.h"
#include "lib/parallel/flat_memory.h"
#include "lib/parallel/gradient_hook.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::parallel {

using units::MemoryKind;
using units::MemoryPhase;
using units::NamedParameter;

Sharded::Sharded(std::vector<NamedParameter> parameters, const dist::Mesh& mesh,
                 const ShardingOptions& sharding, const GradientExchange& exchange)
    : mesh_(mesh),
      shards_(mesh.group(core::Axis::kShard)),
      copies_(exchange, mesh),
      level_(sharding.level),
      reduces_as_bf16_(sharding.reduces_as_bf16),
      parts_on_host_(sharding.parts_on_host && shards_parameters()),
      parts_gather_(shards_, parts_on_host_),
      of_unit_(std::max<std::size_t>(1, sharding.units.size())),
      is_unsharded_(of_unit_.size(), false) {
  const at::NoGradGuard no_grad;
  if (shards_parameters()) {
    parameters.insert(parameters.end(), sharding.frozen.begin(), sharding.frozen.end());
  }
  parts_.resize(parameters.size());
  for (FlatPlan& plan :
       plan_flats(parameters, sharding.units, shards_.world_size(), sharding.gathered_as_bf16)) {
    FlatBlock& block = *blocks_.emplace_back(std::make_unique<FlatBlock>(
        std::move(plan), parameters, shards_.world_size(), shards_.device()));
    block.number = blocks_.size() - 1;
    // Ignores units of other pipeline stages; a tensor tied with them is stored on both stages.
    std::erase_if(block.plan.units,
                  [&](std::size_t unit) { return !sharding.runs.empty() && !sharding.runs[unit]; });
    for (const std::size_t unit : block.plan.units) of_unit_[unit].push_back(&block);
    take_parts(block, parameters);
  }
  if (!shards_parameters()) {
    ahead_ = GatherAhead(blocks_.size(), [this](std::size_t i) { return gather(*blocks_[i]); });
  }
  for (const NamedParameter& part : parts_) {
    if (part.tensor.requires_grad() && part.tensor.numel() > 0) owned_.push_back(part);
  }
}

void Sharded::take_parts(FlatBlock& block, const std::vector<NamedParameter>& parameters) {
  const MemoryPhase phase(MemoryKind::kParameters);
  if (parts_on_host_) block.update = std::make_shared<units::HostUpdate>();
  block.own = block.shard_of(shards_.rank());
  if (shards_parameters()) block.own = parts_gather_.copy_of(block.own);
  const std::int64_t first_here = block.plan.part * shards_.rank();
  std::vector<Slot> slots;  // a matrix's shard counts as one row
  for (std::size_t i = 0; i < block.plan.slots.size(); ++i) {
    const FlatSlot& slot = block.plan.slots[i];
    const NamedParameter& parameter = parameters[slot.parameter];
    const FlatRange range = part_of(slot, block.plan.part, shards_.rank());
    const std::int64_t count = range.last - range.first;
    const std::int64_t begin = count > 0 ? slot.begin + range.first - first_here : 0;
    const at::Tensor tensor = block.own.narrow(0, begin, count).detach();
    NamedParameter& part = parts_[slot.parameter];
    part = shard_of_parameter(parameter, range, tensor);
    part.on_host = block.update;
    if (!block.plan.is_trained) continue;
    part.tensor.requires_grad_(true);
    if (count > 0) {
      block.owned.push_back({.tensor = part.tensor, .begin = begin});
      slots.push_back({.name = parameter.name,
                       .begin = begin,
                       .elements = count,
                       .rows = parameter.dimensions() > 1 ? 1 : 0,
                       .shard = part.state(at::Tensor())});
    }
    on_gradient(parameter.tensor,
                [this, &block, i](const at::Tensor& /*whole*/) { arrive(block, i); });
  }
  copies_.add(std::move(slots));
}

void Sharded::start(const BucketLayout& /*saved*/) {
  if (!shards_parameters()) return;
  const at::NoGradGuard no_grad;
  for (const auto& block : blocks_) {
    block->own.copy_(block->shard_of(shards_.rank()));
    if (block->plan.is_bf16_when_gathered) block->narrow();
    give_memory_back(block->whole);
  }
}

void Sharded::begin_micro_step(bool synchronize) {
  synchronize_ = synchronize;
  half_ = Half::kNone;
}

void Sharded::begin_inputs() {
  synchronize_ = false;
  half_ = Half::kInputs;
}

dist::Pending Sharded::gather(const FlatBlock& block) {
  const at::NoGradGuard no_grad;
  const MemoryPhase phase(MemoryKind::kParameters);
  return parts_gather_.gather(block.whole, block.own, block.update.get());
}

void Sharded::unshard(std::size_t unit) {
  if (is_unsharded_[unit] || of_unit_[unit].empty()) return;
  const MemoryPhase phase(MemoryKind::kParameters);
  is_unsharded_[unit] = true;
  for (FlatBlock* const block : of_unit_[unit]) {
    if (block->users++ > 0) continue;
    take_memory(block->whole);
    block->gathering = gather(*block);
  }
  most_units_ = std::max<std::size_t>(
      most_units_,
      static_cast<std::size_t>(std::count(is_unsharded_.begin(), is_unsharded_.end(), true)));
}

void Sharded::reshard(std::size_t unit) {
  if (!is_unsharded_[unit]) return;
  is_unsharded_[unit] = false;
  for (FlatBlock* const block : of_unit_[unit]) {
    if (--block->users > 0) continue;
    std::exchange(block->gathering, dist::Pending()).wait();  // a prefetch that nobody entered
    give_memory_back(block->whole);
  }
}

void Sharded::enter(std::size_t unit, Pass pass) {
  if (!shards_parameters()) {
    for (const FlatBlock* const block : of_unit_[unit]) ahead_.await(block->number);
    return;
  }
  const at::NoGradGuard no_grad;
  unshard(unit);
  for (FlatBlock* const block : of_unit_[unit]) {
    std::exchange(block->gathering, dist::Pending()).wait();
  }
  if (pass == Pass::kBackward) {
    if (unit > 0) unshard(unit - 1);
  } else if (unit + 1 < of_unit_.size()) {
    unshard(unit + 1);
  }
}

void Sharded::leave(std::size_t unit, Pass pass) {
  const at::NoGradGuard no_grad;
  // Backward starts with the last unit, unless a pipeline runs other micro-batches in between.
  const bool stays =
      pass == Pass::kForward && unit + 1 == of_unit_.size() && mesh_.size(core::Axis::kPipe) == 1;
  if (shards_parameters() && !stays) reshard(unit);
  if (pass != Pass::kBackward || half_ == Half::kInputs) return;
  for (FlatBlock* const block : of_unit_[unit]) {
    if (--block->units_to_come == 0) reduce(*block);
  }
}

void Sharded::prepare_backward(const at::Tensor& /*loss*/) {
  for (const auto& block : blocks_) {
    block->units_to_come = block->plan.units.size();
    block->is_reduced = false;
  }
}

void Sharded::arrive(FlatBlock& block, std::size_t slot) {
  const at::NoGradGuard no_grad;
  if (!block.has_gradient(slot)) return;  // the first half has left it to the second
  // In the first of two backward passes the gradients stay until the second one, so that only one
  // block of gradients exists at a time.
  const bool is_narrow = block.parameters[slot].scalar_type() != block.plan.type;
  if (half_ == Half::kInputs && !is_narrow) return;
  if (half_ == Half::kWeights) {
    if (arriving_ != &block) close(std::exchange(arriving_, &block));
    block.is_reduced = false;
  } else if (block.is_reduced) {
    throw core::InternalError("sharded parameters",
                              "a gradient came when backward was through with its unit");
  }
  add(block, slot);
}

// Waits for a reduce-scatter of this block first, as that reads `sums`.
void Sharded::add(FlatBlock& block, std::size_t slot) {
  if (reducing_ && reducing_->block == &block) finish_reduce();
  block.add_gradient(slot);
}

void Sharded::close(FlatBlock* block) {
  if (block == nullptr) return;
  for (std::size_t slot = 0; slot < block->plan.slots.size(); ++slot) {
    if (!block->has_gradient(slot)) continue;
    block->is_reduced = false;
    add(*block, slot);
  }
  reduce(*block);
}

void Sharded::reduce(FlatBlock& block) {
  if (std::exchange(block.is_reduced, true) || !block.plan.is_trained) return;
  if (level_ == ShardLevel::kOptimizer && !synchronize_) return;  // the last micro-step does it
  finish_reduce();
  const MemoryPhase phase(MemoryKind::kGradients);
  block.complete_sums();
  if (reduces_as_bf16_) block.sums = block.sums.to(at::kBFloat16);
  gradient_bytes_ += static_cast<std::int64_t>(block.sums.nbytes());
  reducing_.emplace(Reducing{.block = &block,
                             .part = at::empty(block.own.sizes(), block.sums.options()),
                             .pending = dist::Pending()});
  reducing_->pending = shards_.reduce_scatter_sum(reducing_->part, block.sums, "gradients");
}

// One reduce-scatter runs at a time, while the next block's gradients arrive.
void Sharded::finish_reduce() {
  if (!reducing_) return;
  FlatBlock& block = *reducing_->block;
  reducing_->pending.wait();
  block.drop_sums();
  if (block.gradient.defined()) {
    block.gradient.add_(reducing_->part);
  } else {
    block.gradient = reducing_->part.to(block.own.scalar_type());
  }
  reducing_.reset();
  if (synchronize_ && half_ == Half::kNone) add_to_copies(block);
}

void Sharded::add_to_copies(FlatBlock& block) {
  if (block.plan.is_trained && !std::exchange(block.is_with_copies, true)) {
    copies_.start(block.number, block.gradient);
  }
}

void Sharded::end_backward() {
  const at::NoGradGuard no_grad;
  ahead_.settle();  // blocks of units that forward has skipped
  const bool all_have_sums = level_ == ShardLevel::kOptimizer || mesh_.size(core::Axis::kPipe) == 1;
  for (auto block = blocks_.rbegin(); half_ == Half::kNone && block != blocks_.rend(); ++block) {
    // Backward of one pipeline stage has no gradients for blocks of the rank's other stages.
    const bool is_of_this = (*block)->units_to_come < (*block)->plan.units.size();
    if (is_of_this || all_have_sums) reduce(**block);
  }
  finish_reduce();
  if (shards_parameters()) {
    for (std::size_t unit = 0; unit < of_unit_.size(); ++unit) reshard(unit);
  }
  if (synchronize_) give_gradients();
}

void Sharded::begin_weights(bool last) {
  half_ = Half::kWeights;
  synchronize_ = last;
  arriving_ = nullptr;
  for (const auto& block : blocks_) block->is_reduced = false;
}

// A block may be reduce-scattered twice, so its sum is complete only now.
void Sharded::end_weights() {
  const at::NoGradGuard no_grad;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) close(block->get());
  finish_reduce();
  if (synchronize_) give_gradients();
}

// Starts the all-reduce over replicas of blocks that the last backward has not started: their
// gradients were complete before, or could still grow.
void Sharded::give_gradients() {
  for (const auto& block : blocks_) add_to_copies(*block);
  copies_.finish();
  for (const auto& block : blocks_) {
    if (!block->plan.is_trained) continue;
    block->is_with_copies = false;
    block->gradient.mul_(1.0 / copies_.divisor());
    for (const FlatBlock::Owned& one : block->owned) {
      one.tensor.mutable_grad() = block->gradient.narrow(0, one.begin, one.tensor.numel());
    }
  }
}

// Counts all-gathers that are still to start, as they belong to the step that is over.
std::int64_t Sharded::exchanged_bytes() const {
  std::int64_t bytes = gradient_bytes_ + parts_gather_.sent_bytes() + copies_.bytes();
  for (std::size_t i = blocks_.size() - ahead_.rest(); i < blocks_.size(); ++i) {
    bytes += static_cast<std::int64_t>(blocks_[i]->own.nbytes());
  }
  return bytes;
}

core::GradientPeak Sharded::gradient_peak(bool accumulates) const {
  const bool keeps_blocks = level_ == ShardLevel::kOptimizer;
  return gradient_peak_of(blocks_, {keeps_blocks, accumulates, reduces_as_bf16_});
}

void Sharded::zero_grad() {
  for (const auto& block : blocks_) block->zero_grad();
}

}  // namespace scaletrain::parallel
