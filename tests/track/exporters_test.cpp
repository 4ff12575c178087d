#include "lib/track/exporters.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"
#include "lib/recipe/sections/log.h"

namespace scaletrain::track {

TEST_CASE("each tracker that a recipe may name has an exporter") {
  REQUIRE(exporters().size() == recipe::kTrackers.size());
  for (const auto& [name, help] : recipe::kTrackers) CHECK(find_exporter(name).name == name);
}

TEST_CASE("TensorBoard alone gets pictures and histograms") {
  for (const ExporterRow& row : exporters()) CHECK(row.shows_media == (row.name == "tensorboard"));
}

TEST_CASE("an unknown tracker is refused") {
  CHECK_THROWS_WITH_AS(
      find_exporter("excel"),
      "--to: \"excel\" is not a tracker\n  use one of: tensorboard, csv, prometheus, wandb, "
      "mlflow, trackio, mlperf",
      core::UsageError);
}

}  // namespace scaletrain::track
