// Prints the learning rate of every step, one a line, with the weight decay where that changes, of
// the schedules that schedule_test.py compares with PyTorch's: schedule_program RECIPE TOTAL_STEPS
// STEPS_PER_EPOCH.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "lib/core/error.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/schedule.h"
#include "lib/optim/swa_lr.h"
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
    optim::SwaLr swa{.lr = 0, .start = total};
    if (recipe.swa && recipe.swa->lr) {
      swa = {.lr = *recipe.swa->lr,
             .start = std::llround(recipe.swa->start->value),
             .anneal = std::llround(recipe.swa->anneal.value),
             .is_linear = recipe.swa->anneal_strategy == "linear"};
    }
    for (std::int64_t step = 0; step < total; ++step) {
      const double from = schedule.lr(std::min(step, swa.start));
      fmt::print("{:.17g}", optim::swa_lr(swa, from, step));
      const auto decay = optim::scheduled_weight_decay(recipe.optimizer, step, total);
      fmt::print("{}\n", decay ? fmt::format(" {:.17g}", *decay) : "");
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
