#include "launcher/jobs/worker_threads.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include "lib/core/process/cores.h"
#include "lib/recipe/recipe.h"

namespace scaletrain::launcher {

TEST_CASE("the recipe says how many threads, else the cores are shared, within the binding") {
  recipe::Recipe recipe;
  unsetenv("OMP_NUM_THREADS");
  const int cores = core::usable_cores();
  CHECK(recipe_threads(recipe, 1, 0) == cores);
  CHECK(recipe_threads(recipe, cores, 0) == 1);
  CHECK(recipe_threads(recipe, 2 * cores, 0) == 1);
  CHECK(recipe_threads(recipe, 1, 1) == 1);
  setenv("OMP_NUM_THREADS", "7,2", 1);
  CHECK(recipe_threads(recipe, 2 * cores, 1) == 7);
  for (const char* const no_number : {"", "0", "two", "3x"}) {
    setenv("OMP_NUM_THREADS", no_number, 1);
    CHECK(recipe_threads(recipe, 1, 1) == 1);
  }
  recipe.threads = cores + 3;
  setenv("OMP_NUM_THREADS", "2", 1);
  CHECK(recipe_threads(recipe, cores, 1) == cores + 3);
  unsetenv("OMP_NUM_THREADS");
}

TEST_CASE("threads share cores where there are more than cores, or others run") {
  struct Case {
    std::int64_t threads;
    int usable;
    double busy;
    int machine;
    bool shares;
  };
  for (const auto& [threads, usable, busy, machine, shares] : {
           Case{8, 8, 0.0, 8, false},
           Case{9, 8, 0.0, 64, true},  // in a container of 8 cores
           Case{8, 8, 0.9, 8, false},  // no whole thread of others
           Case{8, 8, 1.0, 8, true},
           Case{2, 8, 5.9, 8, false},  // there is room beside them
           Case{2, 8, 14.0, 8, true},
           Case{8, 8, 40.0, 64, false},
       }) {
    CHECK(shares_cores(threads, usable, busy, machine) == shares);
  }
}

}  // namespace scaletrain::launcher
