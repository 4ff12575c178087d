#include "lib/train/tune/memory_advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "lib/dist/out_of_memory.h"
#include "lib/train/run/state_shards.h"

namespace scaletrain::train {
namespace {

constexpr std::int64_t kChunks = 8;

std::int64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += static_cast<std::int64_t>(tensor.nbytes());
  return sum;
}

bool accumulates_gradients(const Run& run) {
  return run.batch.accumulate > 1 || run.recipe.parallel.pipeline > 1;
}

struct Change {
  std::int64_t saves = 0;
  std::string text;  // text of the recipe change
};

// Half of the micro-batch needs half of the activations.
void add_smaller_batch(const recipe::Recipe& recipe, const recipe::BatchPlan& plan,
                       const StepMemory& memory, std::vector<Change>& changes) {
  if (plan.per_device % 2 != 0) return;
  const std::int64_t half = plan.per_device / 2;
  const std::string how = recipe.batch.global
                              ? fmt::format("\"global\": {}", plan.global)
                              : fmt::format("\"accumulate\": {}", 2 * plan.accumulate);
  changes.push_back(
      {memory.activations / 2, fmt::format(R"("batch": {{"per_device": {}, {}}})", half, how)});
}

// All units except the last two keep only their inputs, which are comparatively small.
void add_recompute(const recipe::Recipe& recipe, const StepMemory& memory,
                   std::vector<Change>& changes) {
  if (recipe.recompute && recipe.recompute->units == "all") return;
  const auto units = static_cast<std::int64_t>(memory.units);
  if (units < 3) return;
  changes.push_back({memory.activations / units * (units - 2), R"("recompute": "all")"});
}

// The logits and the tensors that their loss keeps, in fp32.
void add_chunks(const recipe::Recipe& recipe, const recipe::BatchPlan& plan,
                std::vector<Change>& changes) {
  if (!recipe::reads_tokens(recipe.model) || recipe.loss.chunk > 0) return;
  constexpr std::int64_t kTwoFloats = 8;
  const std::int64_t tokens = plan.per_device * recipe.data.context;
  const std::int64_t logits = tokens * recipe.model.integer("vocab_size") * kTwoFloats;
  changes.push_back({logits / kChunks * (kChunks - 1),
                     fmt::format(R"("loss": {{"name": "{}", "chunk": {}}})", recipe.loss.name,
                                 (tokens + kChunks - 1) / kChunks)});
}

void add_small_optimizer(const recipe::Recipe& recipe, const StepMemory& memory,
                         std::vector<Change>& changes) {
  const std::string& name = recipe.optimizer.name;
  if (name != "adamw" && name != "lion") return;
  changes.push_back(
      {memory.optimizer / 4 * 3, fmt::format(R"("optimizer": {{"name": "{}_8bit", ...}})", name)});
}

void add_offload(const recipe::Recipe& recipe, const StepMemory& memory,
                 std::vector<Change>& changes) {
  if (!memory.on_device) return;
  const recipe::Offload has = recipe.offload.value_or(recipe::Offload());
  if (!has.optimizer) {
    changes.push_back({memory.optimizer, R"("offload": {"optimizer": true})"});
  }
  if (!has.activations) {
    changes.push_back({memory.activations / 2, R"("offload": {"activations": true})"});
  }
}

}  // namespace

std::string megabytes(std::int64_t bytes) {
  constexpr double kMillion = 1e6;
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / kMillion);
}

StepMemory step_memory(const Run& run, const units::MemoryUse& first) {
  std::vector<at::Tensor> state;
  for (const auto& [name, tensor] : local_tensors(run.learner.optimizer->state())) {
    if (tensor.device() == run.group->device()) state.push_back(tensor);
  }
  return {.parameters = bytes_of(values(local_tensors(model_shards(run)))),
          .optimizer = bytes_of(state),
          .gradients = run.placement->gradient_peak(accumulates_gradients(run)).backward,
          .activations = first.of(units::MemoryKind::kActivations),
          .on_device = !run.group->device().is_cpu(),
          .units = run.engine->units().size()};
}

std::string memory_text(const StepMemory& memory) {
  return fmt::format("parameters {}, gradients {}, optimizer {}, activations {}",
                     megabytes(memory.parameters), megabytes(memory.gradients),
                     megabytes(memory.optimizer),
                     memory.activations > 0 ? megabytes(memory.activations) : "not measured yet");
}

std::vector<std::string> memory_advice(const recipe::Recipe& recipe, const recipe::BatchPlan& plan,
                                       const StepMemory& memory) {
  std::vector<Change> changes;
  add_smaller_batch(recipe, plan, memory, changes);
  add_recompute(recipe, memory, changes);
  add_chunks(recipe, plan, changes);
  add_small_optimizer(recipe, memory, changes);
  add_offload(recipe, memory, changes);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.saves > b.saves; });
  std::vector<std::string> lines;
  for (const Change& one : changes) {
    if (one.saves > 0) lines.push_back(fmt::format("{}: {}", megabytes(one.saves), one.text));
  }
  return lines;
}

core::OutOfMemoryError out_of_memory(const Run& run, const units::MemoryUse& first,
                                     const std::exception& error) {
  const StepMemory memory = step_memory(run, first);
  const std::vector<std::string> advice = memory_advice(run.recipe, run.batch, memory);
  return core::OutOfMemoryError(
      fmt::format("rank {}: step {}", run.group->job_rank(), run.state.step + 1),
      fmt::format("{}; a step's tensors: {}", dist::text_of(error), memory_text(memory)),
      advice.empty()
          ? dist::kLessMemory
          : fmt::format("each of these needs about so much less: {}", fmt::join(advice, "; ")));
}

}  // namespace scaletrain::train
