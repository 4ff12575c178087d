#include "lib/recipe/sections/early_stopping.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("early stopping goes by the measure of the best where it names none") {
  const std::string val = "data.val.shards=v.tar";
  const auto metric_of = [&](const std::vector<std::string>& overrides) {
    return parse_recipe(minimal_recipe(), "r.json", overrides).early_stopping->metric;
  };
  CHECK(metric_of({val, "early_stopping={}"}) == "top1");
  CHECK(metric_of({val, "early_stopping={}", "checkpoint.best=loss"}) == "loss");
  CHECK(metric_of({val, "early_stopping.metric=top5", "checkpoint.best=loss"}) == "top5");
  CHECK(error_of(minimal_recipe(), {val, "early_stopping.metric=perplexity"}) ==
        "--set early_stopping.metric: image_classification does not measure perplexity\n"
        "  use one of: top1, top5, loss");
}

}  // namespace scaletrain::recipe
