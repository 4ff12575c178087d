#include "lib/parallel/unit_flats.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace scaletrain::parallel {
namespace {

// In elements: aligned starts suit vectorized kernels.
constexpr std::int64_t kAlignment = 16;

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<FlatPlan> plan_flats(const std::vector<units::NamedParameter>& parameters,
                                 const std::vector<std::vector<std::string>>& units, int ranks,
                                 const std::set<std::string>& gathered_as_bf16) {
  std::map<std::string, std::vector<std::size_t>> users;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const std::string& name : units[unit]) users[name].push_back(unit);
  }
  std::map<std::tuple<std::vector<std::size_t>, at::ScalarType, bool, bool>, FlatPlan> plans;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& tensor = parameters[i].tensor;
    std::vector<std::size_t> its = users[parameters[i].name];
    if (its.empty()) its.push_back(units.empty() ? 0 : units.size() - 1);
    const bool narrow = gathered_as_bf16.contains(parameters[i].name);
    FlatPlan& plan = plans[{its, tensor.scalar_type(), tensor.requires_grad(), narrow}];
    plan.units = its;
    plan.type = tensor.scalar_type();
    plan.is_trained = tensor.requires_grad();
    plan.is_bf16_when_gathered = narrow;
    const std::int64_t begin =
        plan.slots.empty()
            ? 0
            : round_up(plan.slots.back().begin + plan.slots.back().count, kAlignment);
    plan.slots.push_back({.parameter = i, .begin = begin, .count = tensor.numel()});
  }
  std::vector<FlatPlan> result;
  result.reserve(plans.size());
  for (auto& [key, plan] : plans) {
    const std::int64_t elements = plan.slots.back().begin + plan.slots.back().count;
    plan.part = round_up(std::max<std::int64_t>(1, (elements + ranks - 1) / ranks), kAlignment);
    result.push_back(std::move(plan));
  }
  return result;
}

std::vector<FlatRange> gaps_of(const FlatPlan& plan, int ranks) {
  std::vector<FlatRange> gaps;
  std::int64_t end = 0;
  const auto add = [&](std::int64_t next) {
    if (next > end) gaps.push_back({end, next});
  };
  for (const FlatSlot& slot : plan.slots) {
    add(slot.begin);
    end = slot.begin + slot.count;
  }
  add(plan.part * ranks);
  return gaps;
}

core::GradientBlock gradient_block(const FlatPlan& plan, int ranks) {
  const std::int64_t part = plan.part * static_cast<std::int64_t>(c10::elementSize(plan.type));
  const std::size_t first = plan.units.empty() ? 0 : plan.units.front();
  const std::size_t last = plan.units.empty() ? 0 : plan.units.back();
  return {.first_unit = first, .last_unit = last, .whole = part * ranks, .part = part};
}

FlatRange part_of(const FlatSlot& slot, std::int64_t part, int rank) {
  const std::int64_t first = std::clamp(part * rank - slot.begin, std::int64_t{0}, slot.count);
  const std::int64_t last = std::clamp(part * (rank + 1) - slot.begin, first, slot.count);
  return {first, last};
}

units::NamedParameter shard_of_parameter(const units::NamedParameter& parameter, FlatRange range,
                                         at::Tensor tensor) {
  units::NamedParameter part = parameter;
  part.shard = range_of(parameter.state(at::Tensor()), range.first, range.last);
  part.begin += range.first;
  part.tensor = std::move(tensor);
  return part;
}

}  // namespace scaletrain::parallel
