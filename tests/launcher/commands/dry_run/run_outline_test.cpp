#include "launcher/commands/dry_run/run_outline.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"

namespace scaletrain::launcher {
namespace {

using IntervalUnit = recipe::Duration::Unit;

recipe::Recipe outlined_recipe(const std::vector<std::string>& overrides) {
  return recipe::parse_recipe(R"({"model": {"name": "mlp", "num_classes": 10},
      "data": {"train": {"shards": "a.tar"}, "val": {"shards": "b.tar"}},
      "batch": {"per_device": 16}, "optimizer": {"name": "sgd", "lr": 0.1}, "epochs": 3,
      "validate": {"every": {"steps": 4}}, "checkpoint": {"every": {"epochs": 1}}})",
                              "r.json", overrides);
}

TEST_CASE("an interval is due at its multiples and at the last step") {
  CHECK(times_due({IntervalUnit::kSteps, 10}, 30, 0) == 3);
  CHECK(times_due({IntervalUnit::kSteps, 10}, 31, 0) == 4);
  CHECK(times_due({IntervalUnit::kSteps, 100}, 30, 0) == 1);
  CHECK(times_due({IntervalUnit::kEpochs, 2}, 30, 5) == 3);
  CHECK(times_due({IntervalUnit::kEpochs, 0.01}, 30, 5) == 30);
  CHECK(!times_due({IntervalUnit::kEpochs, 2}, 30, 0));
  CHECK(!times_due({IntervalUnit::kMinutes, 2}, 30, 5));
  CHECK(!times_due({IntervalUnit::kSteps, 10}, 0, 5));
}

TEST_CASE("an outline counts steps, validations and checkpoints") {
  // 2 ranks x 16 samples; 330 samples are 10 steps an epoch.
  const RunOutline outline = outline_run(outlined_recipe({}), 2, 1, 330);
  CHECK(outline.global_batch == 32);
  CHECK(outline.steps_per_epoch == 10);
  CHECK(outline.steps == 30);
  CHECK(outline.validations == 8);  // 4, 8, ..., 28, 30
  CHECK(outline.saves == 3);
  CHECK(outline.kept == 3);  // fewer than 3 newest, 1 best and 1 being written
  CHECK(outline_run(outlined_recipe({"epochs=9"}), 2, 1, 330).kept == 5);
  CHECK(outline_run(outlined_recipe({"data.val=null"}), 2, 1, 330).validations == 0);
  CHECK(!outline_run(outlined_recipe({"checkpoint.every=auto"}), 2, 1, 330).saves);
  CHECK(outline_run(outlined_recipe({}), 2, 1, 0).steps == 0);
}

TEST_CASE("checkpoints that do not fit on the disk are refused with their size") {
  RunOutline outline{.output = "/runs/r", .kept = 3};
  outline.checkpoint_bytes = 2e9;
  outline.free_bytes = 6e9;
  CHECK_NOTHROW(check_space(outline));
  outline.free_bytes = 5e9;
  CHECK_THROWS_WITH_AS(
      check_space(outline),
      "/runs/r: 3 checkpoints of 2 GB need 6 GB, and 5 GB are free\n"
      "  use another folder: --set output=FOLDER, or keep fewer: --set checkpoint.keep_last=1",
      core::StorageError);
}

}  // namespace
}  // namespace scaletrain::launcher
