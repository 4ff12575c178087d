// Prints the learning rate of every step, one a line, of the schedules that schedule_test.py
// compares with PyTorch's: schedule_program RECIPE TOTAL_STEPS STEPS_PER_EPOCH.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "lib/core/error.h"
#include "lib/optim/schedule.h"
#include "lib/recipe/load.h"

int main(int count, char** arguments) {
  using namespace scaletrain;
  if (count != 4) return 2;
  try {
    const recipe::Recipe recipe = recipe::load_recipe(arguments[1]);
    const std::int64_t total = std::atoll(arguments[2]);
    const optim::Schedule schedule(
        recipe.schedule, recipe.optimizer.lr,
        {.total_steps = total, .steps_per_epoch = std::atoll(arguments[3])});
    for (std::int64_t step = 0; step < total; ++step) fmt::print("{:.17g}\n", schedule.lr(step));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
