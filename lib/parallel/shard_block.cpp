#include "lib/parallel/shard_block.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "lib/parallel/flat_memory.h"
#include "lib/units/memory_meter.h"

namespace scaletrain::parallel {

using units::MemoryKind;
using units::MemoryPhase;

ShardBlock::ShardBlock(FlatPlan given, const std::vector<units::NamedParameter>& all, int ranks,
                       at::Device device)
    : plan(std::move(given)), gaps(gaps_of(plan, ranks)), has_sum(plan.slots.size(), false) {
  const MemoryPhase phase(MemoryKind::kParameters);
  gradients = at::TensorOptions(plan.type).device(device);
  whole = at::empty({plan.part * ranks}, gradients);
  for (const FlatRange& gap : gaps) whole.slice(0, gap.first, gap.last).zero_();
  for (const FlatSlot& slot : plan.slots) {
    at::Tensor parameter = all[slot.parameter].tensor;
    const at::Tensor place = whole.narrow(0, slot.begin, slot.count).view(parameter.sizes());
    place.copy_(parameter.detach());
    parameter.set_data(place);
    parameters.push_back(parameter);
  }
}

void ShardBlock::narrow() {
  whole = same_memory_as(whole, at::kBFloat16);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const FlatSlot& slot = plan.slots[i];
    at::Tensor& parameter = parameters[i];
    parameter.set_data(whole.narrow(0, slot.begin, slot.count).view(parameter.sizes()));
  }
}

at::Tensor ShardBlock::place_of(int rank) const {
  return whole.narrow(0, plan.part * rank, plan.part);
}

void ShardBlock::add_gradient(std::size_t slot) {
  const MemoryPhase phase(MemoryKind::kGradients);
  if (!sums.defined()) {
    sums = at::empty(whole.sizes(), gradients);
    for (const FlatRange& gap : gaps) sums.slice(0, gap.first, gap.last).zero_();
  }
  const FlatSlot& place = plan.slots[slot];
  at::Tensor& gradient_of_slot = parameters[slot].mutable_grad();
  const at::Tensor sum = sums.narrow(0, place.begin, place.count).view(parameters[slot].sizes());
  if (has_sum[slot]) {
    sum.add_(gradient_of_slot);
  } else {
    sum.copy_(gradient_of_slot);
  }
  has_sum[slot] = true;
  gradient_of_slot.reset();
}

at::Tensor& ShardBlock::complete_sums() {
  if (!sums.defined()) sums = at::zeros(whole.sizes(), gradients);
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    const FlatSlot& slot = plan.slots[i];
    if (!has_sum[i]) sums.narrow(0, slot.begin, slot.count).zero_();
  }
  return sums;
}

void ShardBlock::drop_sums() {
  // Frees it now, since the watchdog of collectives may hold the tensor longer.
  give_memory_back(sums);
  sums.reset();
  has_sum.assign(has_sum.size(), false);
}

void ShardBlock::zero_grad() {
  for (const Owned& one : owned) one.tensor.mutable_grad().reset();
  gradient.reset();
  sums.reset();
  has_sum.assign(has_sum.size(), false);
}

core::GradientPeak gradient_peak_of(const std::vector<std::unique_ptr<ShardBlock>>& blocks,
                                    const core::ShardedGradients& options) {
  std::vector<core::GradientBlock> trained;
  for (const auto& block : blocks) {
    if (!block->plan.is_trained) continue;
    const auto ranks = static_cast<int>(block->whole.numel() / block->plan.part);
    trained.push_back(gradient_block(block->plan, ranks));
  }
  return core::sharded_gradients(trained, options);
}

}  // namespace scaletrain::parallel
