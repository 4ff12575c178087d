#include "lib/recipe/sections/batch.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "lib/core/error.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kAuto = "auto";
constexpr double kMostMegabytes = 1e9, kMostRampSamples = 1e15;

// A number, or "auto", which is stored as 0.
class CountOrAuto : public Type {
 public:
  explicit CountOrAuto(std::int64_t& value)
      : value_(value), count_(integer(value, from(1).to(kMostCount))) {}

  void read(const Node& node, const std::string& pointer, Problems& problems) override {
    const std::string* const word = node.text();
    if (word == nullptr) return count_->read(node, pointer, problems);
    if (*word == kAuto) {
      value_ = 0;
    } else {
      problems.add(node, pointer, in_quotes(*word) + " is not a number of samples",
                   "use " + phrase());
    }
  }
  Json write() const override { return value_ == 0 ? Json(kAuto) : count_->write(); }
  Json schema() const override { return {{"anyOf", {count_->schema(), {{"const", kAuto}}}}}; }
  std::string phrase() const override { return count_->phrase() + R"(, or "auto")"; }

 private:
  std::int64_t& value_;
  TypePtr count_;
};

// Micro-batches of all ranks together.
struct Micro {
  std::int64_t samples = 0;
  std::string parts;
  const char* less = "";  // other value that could be smaller
};

// Throws as divide_batch() does.
void require_multiple(const char* pointer, std::int64_t number, const Micro& micro) {
  if (number % micro.samples == 0) return;
  const std::int64_t below = number / micro.samples * micro.samples;
  const std::int64_t above = below + micro.samples;
  throw core::RecipeError(
      pointer, fmt::format("{} is not a multiple of {}", number, micro.parts),
      below == 0 ? fmt::format("use {}, or fewer ranks{}", above, micro.less)
                 : fmt::format("use {} or {}, or another number of ranks", below, above));
}

void require_multiples(const Batch& batch, const Micro& micro) {
  require_multiple("/batch/global", *batch.global, micro);
  if (!batch.ramp) return;
  require_multiple("/batch/ramp/start", batch.ramp->start, micro);
  require_multiple("/batch/ramp/increment", batch.ramp->increment, micro);
}

TypePtr ramp_keys(core::BatchRamp& value) {
  auto keys = std::make_unique<Object>();
  keys->require("start", integer(value.start, from(1).to(1e9)),
                "Global batch size of the first steps, in samples. Less than `global`.")
      .require("increment", integer(value.increment, from(1).to(1e9)),
               "Samples by which the global batch grows at each increase.")
      .require("samples", integer(value.samples, from(1).to(kMostRampSamples)),
               "Number of training samples until the batch reaches `global`. Each batch size is "
               "used for an equal share of them.");
  return keys;
}

void check_ramp(const Batch& batch, const Node& tree, Problems& problems) {
  if (!batch.ramp) return;
  const core::BatchRamp& ramp = *batch.ramp;
  const auto add = [&](const char* key, const std::string& found, const std::string& remedy) {
    problems.add(written_at(tree, {"batch", "ramp", key}), fmt::format("/batch/ramp/{}", key),
                 found, remedy);
  };
  if (!batch.global) {
    problems.add(written_at(tree, {"batch", "ramp"}), "/batch/ramp",
                 R"(grows to "global", and there is none)",
                 R"(add "global": N in place of "accumulate")");
    return;
  }
  const std::int64_t global = *batch.global;
  if (ramp.start >= global) {
    add("start", fmt::format("{} does not grow to \"global\", which is {}", ramp.start, global),
        "use less, or leave the ramp out");
    return;
  }
  const std::int64_t way = global - ramp.start;
  if (way % ramp.increment != 0) {
    add("increment",
        fmt::format("{} times a whole number is not the {} from {} to {}", ramp.increment, way,
                    ramp.start, global),
        fmt::format("use {}, or another divisor of {}", std::gcd(way, ramp.increment), way));
  } else if (*core::BatchSizes::why_not(global, ramp) != '\0') {
    add("increment", fmt::format("{} gives {} sizes", ramp.increment, way / ramp.increment),
        "use a larger one: at most 10000 sizes");
  }
  if (batch.is_automatic()) return;
  for (const auto& [key, number] :
       {std::pair("start", ramp.start), {"increment", ramp.increment}}) {
    if (number % batch.per_device == 0) continue;
    const std::int64_t below = number / batch.per_device * batch.per_device;
    const std::int64_t above = below + batch.per_device;
    add(key,
        fmt::format("{} is not a multiple of \"per_device\", which is {}", number,
                    batch.per_device),
        below == 0 ? fmt::format("use {}", above) : fmt::format("use {} or {}", below, above));
  }
}

}  // namespace

TypePtr describe(Batch& value) {
  const auto count = [](std::int64_t& inner) { return integer(inner, from(1).to(kMostCount)); };
  auto keys = std::make_unique<Object>();
  keys->add("per_device", std::make_unique<CountOrAuto>(value.per_device),
            "Micro-batch size per device, in samples. Default: 32. \"auto\" finds the largest that "
            "fits in memory and needs `global`.")
      .add("accumulate", optional(value.accumulate, count),
           "Gradient accumulation steps: micro-batches per optimizer step on each rank. Default: 1 "
           "unless `global` is set.")
      .add("global",
           optional(value.global,
                    [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
           "Global batch size: samples per optimizer step over all ranks, a multiple of per_device "
           "times the data-parallel ranks. Gradient accumulation follows from it.")
      .add("memory_mb",
           optional(value.memory_mb,
                    [](std::int64_t& inner) { return integer(inner, from(1).to(kMostMegabytes)); }),
           "Memory limit for \"per_device\": \"auto\": megabytes (10^6 bytes) that the tensors of "
           "a rank may take. Default: the whole GPU; required on a CPU.")
      .add("ramp", optional(value.ramp, ramp_keys),
           "Batch size warmup, as Megatron's --rampup-batch-size: the global batch starts small "
           "and grows to `global`. Default: off.")
      .at_most_one({"accumulate", "global"});
  return keys;
}

void check(const Batch& batch, const Node& tree, Problems& problems) {
  check_ramp(batch, tree, problems);
  if (batch.is_automatic()) {
    if (batch.global) return;
    problems.add(written_at(tree, {"batch", "per_device"}), "/batch/per_device",
                 R"("auto" finds what "global" is divided into, and there is none)",
                 R"(add "global": N in place of "accumulate", or use a number)");
    return;
  }
  if (!batch.global || *batch.global % batch.per_device == 0) return;
  const std::int64_t below = *batch.global / batch.per_device * batch.per_device;
  const std::int64_t above = below + batch.per_device;
  problems.add(
      written_at(tree, {"batch", "global"}), "/batch/global",
      fmt::format("{} is not a multiple of \"per_device\", which is {}", *batch.global,
                  batch.per_device),
      below == 0 ? fmt::format("use {}", above) : fmt::format("use {} or {}", below, above));
}

BatchPlan divide_batch(const Batch& batch, int readers) {
  const std::int64_t micro = batch.per_device * readers;  // samples of one micro-step
  if (!batch.global) {
    const std::int64_t accumulate = batch.accumulate.value_or(1);
    return {batch.per_device, accumulate, micro * accumulate};
  }
  const std::int64_t global = *batch.global;
  if (batch.is_automatic()) {
    require_multiples(batch, {.samples = readers, .parts = fmt::format("{} ranks", readers)});
    return {.global = global, .ramp = batch.ramp};
  }
  require_multiples(batch, {.samples = micro,
                            .parts = fmt::format("{} = per_device {} x {} ranks", micro,
                                                 batch.per_device, readers),
                            .less = ", or a smaller per_device"});
  return {batch.per_device, global / micro, global, batch.ramp};
}

void check_epoch_of(const BatchPlan& plan, std::int64_t samples) {
  if (samples >= plan.global) return;
  const std::int64_t micro = plan.per_device * plan.accumulate;  // 0: found when training begins
  const std::string parts =
      micro == 0 ? ""
                 : fmt::format(" (per_device {} x accumulate {} x {} ranks)", plan.per_device,
                               plan.accumulate, plan.global / micro);
  throw core::RecipeError(
      "/batch",
      fmt::format("a global batch of {} samples{} is more than the {} samples of an epoch",
                  plan.global, parts, samples),
      "lower per_device or accumulate, use fewer ranks, or add data");
}

std::int64_t part_of_all(const core::BatchRamp& ramp) {
  return std::gcd(ramp.start, ramp.increment);
}

}  // namespace scaletrain::recipe
