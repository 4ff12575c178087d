#include "lib/train/simulate/part_plan.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "lib/parallel/unit_flats.h"
#include "lib/train/simulate/gather_count.h"

namespace scaletrain::train {
namespace {

using parallel::FlatPlan;
using parallel::ShardLevel;
using units::NamedParameter;

constexpr std::int64_t kBf16Bytes = 2;

bool runs(const PartOf& of, std::size_t unit) {
  return std::ranges::any_of(
      of.stages, [unit](const auto& stage) { return stage.first <= unit && unit < stage.second; });
}

// Returns the number of reduce-scatters of `block`'s gradients in a step.
std::int64_t scatters_of(const FlatPlan& block, ShardLevel level, const PartOf& of) {
  if (level == ShardLevel::kOptimizer) return 1;
  // Each stage that shares it exchanges it after one of its backwards.
  const auto stages = std::ranges::count_if(of.stages, [&block](const auto& stage) {
    return std::ranges::any_of(block.units, [&stage](std::size_t unit) {
      return stage.first <= unit && unit < stage.second;
    });
  });
  return of.micros * stages;
}

// Adds the local shards of `block`; the slice of a matrix counts as one row.
void add_owned(const FlatPlan& block, const std::vector<NamedParameter>& parameters, int place,
               PartPlan& plan) {
  CopyBucket bucket{.elements = block.part, .type = block.type};
  for (const parallel::FlatSlot& slot : block.slots) {
    const parallel::FlatRange range = parallel::part_of(slot, block.part, place);
    const std::int64_t count = range.last - range.first;
    if (count == 0) continue;
    const NamedParameter& parameter = parameters[slot.parameter];
    plan.owned.push_back(without_memory(parameter, {count}));
    bucket.slots.push_back({.name = parameter.name,
                            .begin = slot.begin + range.first - block.part * place,
                            .elements = count,
                            .rows = parameter.dimensions() > 1 ? 1 : 0});
  }
  plan.copies.push_back(std::move(bucket));
}

}  // namespace

NamedParameter without_memory(const NamedParameter& parameter, at::IntArrayRef shape) {
  NamedParameter result = parameter;
  result.tensor = at::empty(shape, parameter.tensor.options().device(at::kMeta));
  result.tensor.requires_grad_(parameter.tensor.requires_grad());
  return result;
}

PartPlan plan_parts(const std::vector<NamedParameter>& parameters,
                    const parallel::ShardingOptions& sharding, const PartOf& of) {
  std::vector<FlatPlan> blocks =
      parallel::plan_flats(parameters, sharding.units, of.ranks, sharding.gathered_as_bf16);
  for (FlatPlan& block : blocks) {
    std::erase_if(block.units, [&of](std::size_t unit) { return !runs(of, unit); });
  }
  const std::size_t units = sharding.units.size();
  GatherCount gathers(blocks, units);
  for (const auto& [begin, end] : of.stages) gathers.pass(begin, end, !of.is_of_pipeline);

  PartPlan plan;
  std::vector<core::GradientBlock> trained;
  std::vector<std::int64_t> there(units, 0);  // bytes of the blocks of each unit
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const FlatPlan& block = blocks[i];
    const auto item = static_cast<std::int64_t>(c10::elementSize(block.type));
    const std::int64_t elements = block.part * of.ranks;
    const std::int64_t whole = elements * (block.is_bf16_when_gathered ? kBf16Bytes : item);
    const bool each_time = sharding.level == ShardLevel::kParameters;
    const std::int64_t times = each_time ? gathers.count[i] * of.micros : 1;
    plan.gathers.calls += times;
    plan.gathers.bytes += times * whole;
    for (const std::size_t unit : block.units) there[unit] += whole;
    plan.bytes += block.part * item;
    if (!block.is_trained) continue;
    add_owned(block, parameters, of.place, plan);
    trained.push_back(parallel::gradient_block(block, of.ranks));
    const std::int64_t scatters = scatters_of(block, sharding.level, of);
    plan.scatters.calls += scatters;
    plan.scatters.bytes += scatters * elements * (sharding.reduces_as_bf16 ? kBf16Bytes : item);
  }
  for (std::size_t unit = 0; unit < units; ++unit) {
    const std::int64_t next = unit + 1 < units ? there[unit + 1] : 0;
    plan.together = std::max(plan.together, there[unit] + next);
  }
  plan.gradients =
      core::sharded_gradients(trained, {.keeps_blocks = sharding.level == ShardLevel::kOptimizer,
                                        .accumulates = of.micros > 1 || of.is_of_pipeline,
                                        .reduces_as_bf16 = sharding.reduces_as_bf16});
  return plan;
}

}  // namespace scaletrain::train
