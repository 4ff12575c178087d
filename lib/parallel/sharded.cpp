#include "lib/parallel/sharded.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/core/error.h"
#include "lib/parallel/flat_memory.h"
#include "lib/parallel/gradient_hook.h"
#include "lib/parallel/part_gather.h"
#include "lib/parallel/unit_flats.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::parallel {

using units::MemoryKind;
using units::MemoryPhase;
using units::NamedParameter;

class Sharded::Impl {
 public:
  Impl(std::vector<NamedParameter> parameters, const dist::Mesh& mesh, const Sharding& sharding);

  void start();
  void spread();
  void zero_grad();
  void begin_micro_step(bool synchronize) { synchronize_ = synchronize; }
  void begin_backward();
  void enter(std::size_t unit, Pass pass);
  void leave(std::size_t unit, Pass pass);
  void end_backward();
  bool cuts_parameters() const { return level_ == ShardLevel::kParameters; }
  std::int64_t all_exchanged_bytes() const { return exchanged_bytes_ + parts_gather_.sent_bytes(); }

  std::vector<NamedParameter> owned, parts;
  std::size_t most_units = 0;

 private:
  // A part of a parameter that this rank updates, and where it lies in its block's part.
  struct Owned {
    at::Tensor tensor;
    std::int64_t begin;
  };
  struct Block {
    FlatPlan plan;
    std::vector<FlatRange> gaps;
    std::vector<at::Tensor> parameters;  // by slot: the model's, views of `whole`
    at::Tensor whole;                    // [part * ranks]; without memory while it is not there
    at::Tensor own;                      // [part], what lies here; of `whole` where that stays
    at::TensorOptions gradients;         // of its parameters, on the device
    std::vector<Owned> owned;
    std::shared_ptr<units::HostUpdate> update;  // of `own`; null where it does not lie on the host
    std::size_t users = 0;                      // units that are there and use it
    dist::Pending gathering;                    // the last one

    at::Tensor sums;                // of gradients, like `whole`; undefined: none has come
    std::vector<bool> has_sum;      // by slot
    at::Tensor gradient;            // of `own`; undefined: none yet in this step
    std::size_t units_to_come = 0;  // that backward is not through with
    bool is_reduced = false;        // in this backward
  };
  struct Reducing {
    Block* block;
    at::Tensor part;
    dist::Pending pending;
  };

  void move_in(Block& block, const std::vector<NamedParameter>& parameters);
  void take_parts(Block& block, const std::vector<NamedParameter>& parameters);
  at::Tensor place_of(const Block& block) const;
  void narrow(Block& block) const;
  dist::Pending gather(const Block& block) {
    return parts_gather_.gather(block.whole, block.own, block.update.get());
  }
  void fetch(std::size_t unit);
  void give_back(std::size_t unit);
  void arrive(Block& block, std::size_t slot, const at::Tensor& parameter);
  void reduce(Block& block);
  void finish_reduce();
  void give_gradients();

  const dist::Mesh& mesh_;
  dist::Group& shards_;
  dist::Group& replicas_;  // that own the same elements
  ShardLevel level_;
  bool reduces_as_bf16_;
  bool parts_on_host_;
  PartGather parts_gather_;
  std::int64_t exchanged_bytes_ = 0;  // of gradients
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::vector<Block*>> of_unit_;
  std::vector<bool> is_there_;  // by unit, where parameters are cut
  std::optional<Reducing> reducing_;
  std::vector<dist::Pending> replica_sums_;  // that are under way
  bool synchronize_ = true;
};

Sharded::Impl::Impl(std::vector<NamedParameter> parameters, const dist::Mesh& mesh,
                    const Sharding& sharding)
    : mesh_(mesh),
      shards_(mesh.group(core::Axis::kShard)),
      replicas_(mesh.copies()),
      level_(sharding.level),
      reduces_as_bf16_(sharding.reduces_as_bf16),
      parts_on_host_(sharding.parts_on_host && cuts_parameters()),
      parts_gather_(shards_, parts_on_host_),
      of_unit_(std::max<std::size_t>(1, sharding.units.size())),
      is_there_(of_unit_.size(), false) {
  const at::NoGradGuard no_grad;
  if (cuts_parameters()) {
    parameters.insert(parameters.end(), sharding.frozen.begin(), sharding.frozen.end());
  }
  parts.resize(parameters.size());
  for (FlatPlan& plan :
       plan_flats(parameters, sharding.units, shards_.world_size(), sharding.gathered_as_bf16)) {
    Block& block = *blocks_.emplace_back(std::make_unique<Block>());
    block.plan = std::move(plan);
    block.gaps = gaps_of(block.plan, shards_.world_size());
    block.has_sum.resize(block.plan.slots.size(), false);
    // What other stages of a pipeline use too lies there as here.
    std::erase_if(block.plan.units,
                  [&](std::size_t unit) { return !sharding.runs.empty() && !sharding.runs[unit]; });
    for (const std::size_t unit : block.plan.units) of_unit_[unit].push_back(&block);
    move_in(block, parameters);
    take_parts(block, parameters);
  }
  for (const NamedParameter& part : parts) {
    if (part.tensor.requires_grad() && part.tensor.numel() > 0) owned.push_back(part);
  }
}

// The parameters become views of the block.
void Sharded::Impl::move_in(Block& block, const std::vector<NamedParameter>& parameters) {
  const MemoryPhase phase(MemoryKind::kParameters);
  block.whole = at::empty({block.plan.part * shards_.world_size()},
                          at::TensorOptions(block.plan.type).device(shards_.device()));
  for (const FlatRange& gap : block.gaps) block.whole.slice(0, gap.first, gap.last).zero_();
  for (const FlatSlot& slot : block.plan.slots) {
    at::Tensor parameter = parameters[slot.parameter].tensor;
    const at::Tensor place = block.whole.narrow(0, slot.begin, slot.count).view(parameter.sizes());
    place.copy_(parameter.detach());
    parameter.set_data(place);
    block.parameters.push_back(parameter);
  }
}

// What this rank has of them.
void Sharded::Impl::take_parts(Block& block, const std::vector<NamedParameter>& parameters) {
  const MemoryPhase phase(MemoryKind::kParameters);
  block.gradients = block.whole.options();
  if (parts_on_host_) block.update = std::make_shared<units::HostUpdate>();
  block.own = place_of(block);
  if (cuts_parameters()) block.own = parts_gather_.copy_of(block.own);
  const std::int64_t first_here = block.plan.part * shards_.rank();
  for (std::size_t i = 0; i < block.plan.slots.size(); ++i) {
    const FlatSlot& slot = block.plan.slots[i];
    const NamedParameter& parameter = parameters[slot.parameter];
    const FlatRange range = part_of(slot, block.plan.part, shards_.rank());
    const std::int64_t count = range.last - range.first;
    const std::int64_t begin = count > 0 ? slot.begin + range.first - first_here : 0;
    const at::Tensor tensor = block.own.narrow(0, begin, count).detach();
    NamedParameter& part = parts[slot.parameter];
    part = part_of_parameter(parameter, range, tensor);
    part.on_host = block.update;
    if (!block.plan.is_trained) continue;
    part.tensor.requires_grad_(true);
    if (count > 0) block.owned.push_back({.tensor = part.tensor, .begin = begin});
    on_gradient(parameter.tensor,
                [this, &block, i](const at::Tensor& whole) { arrive(block, i, whole); });
  }
}

at::Tensor Sharded::Impl::place_of(const Block& block) const {
  return block.whole.narrow(0, block.plan.part * shards_.rank(), block.plan.part);
}

void Sharded::Impl::start() {
  if (!cuts_parameters()) return;
  const at::NoGradGuard no_grad;
  for (const auto& block : blocks_) {
    block->own.copy_(place_of(*block));
    if (block->plan.is_bf16_when_gathered) narrow(*block);
    give_memory_back(block->whole);
  }
}

// From now on the parameters are bf16, in the same memory as before.
void Sharded::Impl::narrow(Block& block) const {
  block.whole = same_memory_as(block.whole, at::kBFloat16);
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    const FlatSlot& slot = block.plan.slots[i];
    at::Tensor& parameter = block.parameters[i];
    parameter.set_data(block.whole.narrow(0, slot.begin, slot.count).view(parameter.sizes()));
  }
}

void Sharded::Impl::spread() {
  if (cuts_parameters()) return;  // what is cut is gathered each time
  const at::NoGradGuard no_grad;
  // Two at a time: some exchanges need as much memory again. Who changes the parts next must not
  // meet it under way.
  dist::Pending before;
  for (const auto& block : blocks_) {
    std::exchange(before, gather(*block)).wait();
  }
  before.wait();
}

void Sharded::Impl::fetch(std::size_t unit) {
  if (is_there_[unit] || of_unit_[unit].empty()) return;
  const MemoryPhase phase(MemoryKind::kParameters);
  is_there_[unit] = true;
  for (Block* const block : of_unit_[unit]) {
    if (block->users++ > 0) continue;
    take_memory(block->whole);
    block->gathering = gather(*block);
  }
  most_units = std::max<std::size_t>(
      most_units, static_cast<std::size_t>(std::count(is_there_.begin(), is_there_.end(), true)));
}

void Sharded::Impl::give_back(std::size_t unit) {
  if (!is_there_[unit]) return;
  is_there_[unit] = false;
  for (Block* const block : of_unit_[unit]) {
    if (--block->users > 0) continue;
    std::exchange(block->gathering, dist::Pending()).wait();  // of one that nobody has entered
    give_memory_back(block->whole);
  }
}

void Sharded::Impl::enter(std::size_t unit, Pass pass) {
  if (!cuts_parameters()) return;
  const at::NoGradGuard no_grad;
  fetch(unit);
  for (Block* const block : of_unit_[unit]) {
    std::exchange(block->gathering, dist::Pending()).wait();
  }
  if (pass == Pass::kBackward) {
    if (unit > 0) fetch(unit - 1);
  } else if (unit + 1 < of_unit_.size()) {
    fetch(unit + 1);
  }
}

void Sharded::Impl::leave(std::size_t unit, Pass pass) {
  const at::NoGradGuard no_grad;
  // Backward begins with the last one, where other micro-batches do not come in between.
  const bool stays =
      pass == Pass::kForward && unit + 1 == of_unit_.size() && mesh_.size(core::Axis::kPipe) == 1;
  if (cuts_parameters() && !stays) give_back(unit);
  if (pass != Pass::kBackward) return;
  for (Block* const block : of_unit_[unit]) {
    if (--block->units_to_come == 0) reduce(*block);
  }
}

void Sharded::Impl::begin_backward() {
  for (const auto& block : blocks_) {
    block->units_to_come = block->plan.units.size();
    block->is_reduced = false;
  }
}

void Sharded::Impl::arrive(Block& block, std::size_t slot, const at::Tensor& parameter) {
  if (block.is_reduced) {
    throw core::InternalError("sharded parameters",
                              "a gradient came when backward was through with its unit");
  }
  const at::NoGradGuard no_grad;
  const MemoryPhase phase(MemoryKind::kGradients);
  if (!block.sums.defined()) {
    block.sums = at::empty(block.whole.sizes(), block.gradients);
    for (const FlatRange& gap : block.gaps) block.sums.slice(0, gap.first, gap.last).zero_();
  }
  const FlatSlot& place = block.plan.slots[slot];
  at::Tensor& gradient = parameter.mutable_grad();
  const at::Tensor sum = block.sums.narrow(0, place.begin, place.count).view(parameter.sizes());
  if (block.has_sum[slot]) {
    sum.add_(gradient);
  } else {
    sum.copy_(gradient);
  }
  block.has_sum[slot] = true;
  gradient.reset();
}

void Sharded::Impl::reduce(Block& block) {
  if (std::exchange(block.is_reduced, true) || !block.plan.is_trained) return;
  if (level_ == ShardLevel::kOptimizer && !synchronize_) return;  // with the next micro-step's
  finish_reduce();
  const MemoryPhase phase(MemoryKind::kGradients);
  if (!block.sums.defined()) block.sums = at::zeros(block.whole.sizes(), block.gradients);
  for (std::size_t i = 0; i < block.plan.slots.size(); ++i) {
    const FlatSlot& slot = block.plan.slots[i];
    if (!block.has_sum[i]) block.sums.narrow(0, slot.begin, slot.count).zero_();
  }
  if (reduces_as_bf16_) block.sums = block.sums.to(at::kBFloat16);
  exchanged_bytes_ += static_cast<std::int64_t>(block.sums.nbytes());
  reducing_.emplace(Reducing{.block = &block,
                             .part = at::empty(block.own.sizes(), block.sums.options()),
                             .pending = dist::Pending()});
  reducing_->pending = shards_.reduce_scatter_sum(reducing_->part, block.sums, "gradients");
}

// Of one block at a time: the next one's gradients arrive meanwhile.
void Sharded::Impl::finish_reduce() {
  if (!reducing_) return;
  Block& block = *reducing_->block;
  reducing_->pending.wait();
  give_memory_back(block.sums);  // now: who watches the exchange holds the tensor for a while
  block.sums.reset();
  block.has_sum.assign(block.has_sum.size(), false);
  if (block.gradient.defined()) {
    block.gradient.add_(reducing_->part);
  } else {
    block.gradient = reducing_->part.to(block.own.scalar_type());
  }
  reducing_.reset();
  if (synchronize_ && replicas_.world_size() > 1) {
    exchanged_bytes_ += static_cast<std::int64_t>(block.gradient.nbytes());
    replica_sums_.push_back(replicas_.all_reduce_sum(block.gradient, "gradients of the replicas"));
  }
}

void Sharded::Impl::end_backward() {
  const at::NoGradGuard no_grad;
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    // Backward of a pipeline's stage says nothing of the rank's other stages.
    const FlatPlan& plan = (*block)->plan;
    const bool is_of_this = (*block)->units_to_come < plan.units.size();
    if (is_of_this || synchronize_ || mesh_.size(core::Axis::kPipe) == 1) reduce(**block);
  }
  finish_reduce();
  if (cuts_parameters()) {
    for (std::size_t unit = 0; unit < of_unit_.size(); ++unit) give_back(unit);
  }
  if (synchronize_) give_gradients();
}

void Sharded::Impl::give_gradients() {
  for (dist::Pending& one : replica_sums_) one.wait();
  replica_sums_.clear();
  for (const auto& block : blocks_) {
    if (!block->plan.is_trained) continue;
    block->gradient.mul_(1.0 / mesh_.gradients().world_size());
    for (const Owned& one : block->owned) {
      one.tensor.mutable_grad() = block->gradient.narrow(0, one.begin, one.tensor.numel());
    }
  }
}

void Sharded::Impl::zero_grad() {
  for (const auto& block : blocks_) {
    for (const Owned& one : block->owned) one.tensor.mutable_grad().reset();
    block->gradient.reset();
    block->sums.reset();
    block->has_sum.assign(block->has_sum.size(), false);
  }
}

Sharded::Sharded(std::vector<NamedParameter> parameters, const dist::Mesh& mesh,
                 const Sharding& sharding)
    : impl_(std::make_unique<Impl>(std::move(parameters), mesh, sharding)) {}

Sharded::~Sharded() = default;

const std::vector<NamedParameter>& Sharded::owned() const { return impl_->owned; }
const std::vector<NamedParameter>& Sharded::parts() const { return impl_->parts; }
void Sharded::start(const BucketLayout& /*saved*/) { impl_->start(); }
void Sharded::spread() { impl_->spread(); }
void Sharded::zero_grad() { impl_->zero_grad(); }
void Sharded::begin_micro_step(bool synchronize) { impl_->begin_micro_step(synchronize); }
void Sharded::prepare_backward(const at::Tensor& /*loss*/) { impl_->begin_backward(); }
void Sharded::enter(std::size_t unit, Pass pass) { impl_->enter(unit, pass); }
void Sharded::leave(std::size_t unit, Pass pass) { impl_->leave(unit, pass); }
void Sharded::end_backward() { impl_->end_backward(); }
bool Sharded::exchanges() const { return impl_->cuts_parameters(); }
std::int64_t Sharded::exchanged_bytes() const { return impl_->all_exchanged_bytes(); }
std::size_t Sharded::most_units() const { return impl_->most_units; }

}  // namespace scaletrain::parallel
