// Prints the learning rate of every step, one a line, with the weight decay where that changes, of
// the schedules that schedule_test.py compares with PyTorch's: schedule_program TOTAL_STEPS
// STEPS_PER_EPOCH RECIPE...; the rates of a recipe end with an empty line.
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

namespace scaletrain {
namespace {

void print_rates(const recipe::Recipe& recipe, const optim::ScheduleSpan& span) {
  const std::int64_t total = span.total_steps;
  const optim::Schedule schedule(recipe.schedule, recipe.optimizer.lr, span);
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
  fmt::print("\n");
}

}  // namespace
}  // namespace scaletrain

int main(int count, char** arguments) {
  using namespace scaletrain;
  if (count < 4) return 2;
  try {
    for (int i = 3; i < count; ++i) {
      print_rates(recipe::load_recipe(arguments[i]), {.total_steps = std::atoll(arguments[1]),
                                                      .steps_per_epoch = std::atoll(arguments[2])});
    }
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return static_cast<int>(core::exit_code_of(error));
  }
}
