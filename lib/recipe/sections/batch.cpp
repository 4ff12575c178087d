#include "lib/recipe/sections/batch.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "lib/core/error.h"
#include "lib/recipe/schema/object.h"

namespace scaletrain::recipe {
namespace {

constexpr const char* kAuto = "auto";
constexpr double kMostMegabytes = 1e9;

// A count, or "auto", which is kept as 0.
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

// Throws as plan_batch() does; `micro` samples, made up of `parts`, are what all ranks take at
// once.
void require_multiple(std::int64_t global, std::int64_t micro, const std::string& parts,
                      const char* less) {
  if (global % micro == 0) return;
  const std::int64_t below = global / micro * micro;
  const std::int64_t above = below + micro;
  throw core::RecipeError(
      "/batch/global", fmt::format("{} is not a multiple of {}", global, parts),
      below == 0 ? fmt::format("use {}, or fewer ranks{}", above, less)
                 : fmt::format("use {} or {}, or another number of ranks", below, above));
}

}  // namespace

TypePtr describe(Batch& value) {
  const auto count = [](std::int64_t& inner) { return integer(inner, from(1).to(kMostCount)); };
  auto keys = std::make_unique<Object>();
  keys->add("per_device", std::make_unique<CountOrAuto>(value.per_device),
            "samples that a device computes at a time; auto: the most that fit its memory")
      .add("accumulate", optional(value.accumulate, count),
           "micro-batches of a step; 1 where \"global\" is not given")
      .add("global",
           optional(value.global,
                    [](std::int64_t& inner) { return integer(inner, from(1).to(1e9)); }),
           "samples of a step over all ranks; the micro-batches follow from it")
      .add("memory_mb",
           optional(value.memory_mb,
                    [](std::int64_t& inner) { return integer(inner, from(1).to(kMostMegabytes)); }),
           "with per_device auto: megabytes that the tensors of a rank may take in a step; without "
           "it all that a GPU has")
      .at_most_one({"accumulate", "global"});
  return keys;
}

void check(const Batch& batch, const Node& tree, Problems& problems) {
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

BatchPlan plan_batch(const Batch& batch, int readers) {
  const std::int64_t micro = batch.per_device * readers;  // samples of one micro-step
  if (!batch.global) {
    const std::int64_t accumulate = batch.accumulate.value_or(1);
    return {batch.per_device, accumulate, micro * accumulate};
  }
  const std::int64_t global = *batch.global;
  if (batch.is_automatic()) {
    require_multiple(global, readers, fmt::format("{} ranks", readers), "");
    return {.global = global};
  }
  require_multiple(global, micro,
                   fmt::format("{} = per_device {} x {} ranks", micro, batch.per_device, readers),
                   ", or a smaller per_device");
  return {batch.per_device, global / micro, global};
}

}  // namespace scaletrain::recipe
