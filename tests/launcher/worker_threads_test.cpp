#include "launcher/worker_threads.h"

#include <doctest/doctest.h>

#include "lib/core/cores.h"

namespace scaletrain::launcher {

TEST_CASE("the recipe says how many threads, else the cores are shared, within the binding") {
  recipe::Recipe recipe;
  const int cores = core::usable_cores();
  CHECK(recipe_threads(recipe, 1, 0) == cores);
  CHECK(recipe_threads(recipe, cores, 0) == 1);
  CHECK(recipe_threads(recipe, 2 * cores, 0) == 1);
  CHECK(recipe_threads(recipe, 1, 1) == 1);
  recipe.threads = cores + 3;
  CHECK(recipe_threads(recipe, cores, 1) == cores + 3);
}

}  // namespace scaletrain::launcher
