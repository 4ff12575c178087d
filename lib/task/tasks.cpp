#include <fmt/format.h>

#include "lib/core/error.h"
#include "lib/core/registry.h"
#include "lib/recipe/recipe.h"
#include "lib/task/task.h"

namespace scaletrain::task {

// Each is in a file of lib/task/tasks/; a row without one does not link.
#define SCALETRAIN_TASK(name, ...)                                                            \
  std::unique_ptr<Task> make_##name(const recipe::TaskRow& row, const recipe::Recipe& recipe, \
                                    at::Device device);
#include "lib/recipe/catalog/tasks.def"

void Task::cut_by(const units::ClassCut& /*cut*/) {
  throw core::RecipeError(
      "/task",
      fmt::format("{} needs the logits of all classes, which tensor-parallel ranks divide",
                  row().name),
      "leave out /parallel/tensor");
}

void Task::share_sequences(const units::TokenCut& /*cut*/) {
  throw core::RecipeError(
      "/task",
      fmt::format("{} has no token sequences that context-parallel ranks could divide", row().name),
      "leave out /parallel/context");
}

namespace {

using Factory = std::unique_ptr<Task> (*)(const recipe::TaskRow&, const recipe::Recipe&,
                                          at::Device);

const core::Registry<Factory>& registry() {
  static const core::Registry<Factory> filled = [] {
    core::Registry<Factory> factories("task");
#define SCALETRAIN_TASK(name, ...) factories.add(#name, make_##name);
#include "lib/recipe/catalog/tasks.def"
    return factories;
  }();
  return filled;
}

}  // namespace

std::unique_ptr<Task> make_task(const recipe::Recipe& recipe, at::Device device) {
  const Factory factory = registry().find(recipe.task);
  return factory(*recipe::find_task(recipe.task), recipe, device);
}

}  // namespace scaletrain::task
