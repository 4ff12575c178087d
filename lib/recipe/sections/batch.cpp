#include "lib/recipe/sections/batch.h"

#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {

TypePtr describe(Batch& value) {
  const auto count = [](std::int64_t& inner) { return integer(inner, from(1).to(kMostCount)); };
  auto keys = std::make_unique<Object>();
  keys->add("per_device", count(value.per_device), "samples that a device computes at a time")
      .add("accumulate", optional(value.accumulate, count),
           "micro-batches of a step; 1 where \"global\" is not given")
      .add("global",
           optional(value.global,
                    [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
           "samples of a step over all ranks; the micro-batches follow from it")
      .at_most_one({"accumulate", "global"});
  return keys;
}

void check(const Batch& batch, const Node& tree, Problems& problems) {
  if (!batch.global || *batch.global % batch.per_device == 0) return;
  const std::int64_t below = *batch.global / batch.per_device * batch.per_device;
  const std::int64_t above = below + batch.per_device;
  problems.add(
      written_at(tree, {"batch", "global"}), "/batch/global",
      fmt::format("{} is not a multiple of \"per_device\", which is {}", *batch.global,
                  batch.per_device),
      below == 0 ? fmt::format("use {}", above) : fmt::format("use {} or {}", below, above));
}

BatchPlan plan_batch(const Batch& batch, int readers) {
  const std::int64_t micro = batch.per_device * readers;  // samples of one micro-step
  if (!batch.global) {
    const std::int64_t accumulate = batch.accumulate.value_or(1);
    return {batch.per_device, accumulate, micro * accumulate};
  }
  const std::int64_t global = *batch.global;
  if (global % micro == 0) return {batch.per_device, global / micro, global};
  const std::int64_t below = global / micro * micro;
  const std::int64_t above = below + micro;
  throw core::RecipeError(
      "/batch/global",
      fmt::format("{} is not a multiple of {} = per_device {} x {} ranks", global, micro,
                  batch.per_device, readers),
      below == 0 ? fmt::format("use {}, or fewer ranks, or a smaller per_device", above)
                 : fmt::format("use {} or {}, or another number of ranks", below, above));
}

}  // namespace scaletrain::recipe
