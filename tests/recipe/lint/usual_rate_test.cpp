#include "lib/recipe/lint/usual_rate.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {
namespace {

Optimizer optimizer_with(const std::vector<std::string>& overrides) {
  return parse_recipe(minimal_recipe(), "r.json", overrides).optimizer;
}

double rate_with(const std::vector<std::string>& overrides, std::int64_t global) {
  const std::optional<UsualRate> usual = usual_rate(optimizer_with(overrides), global);
  return usual ? usual->rate : 0;
}

TEST_CASE("the usual rate grows linearly with SGD's batch and by the root with Adam's") {
  CHECK(rate_with({}, 256) == doctest::Approx(0.1));
  CHECK(rate_with({}, 8192) == doctest::Approx(3.2));  // Goyal et al. 2017: 0.1 x 8192 / 256
  CHECK(rate_with({"optimizer.name=adamw"}, 1024) == doctest::Approx(0.001));
  CHECK(rate_with({"optimizer.name=adamw"}, 256) == doctest::Approx(0.0005));
}

TEST_CASE("the usual rate of SGD keeps lr / (1 - momentum)") {
  CHECK(rate_with({"optimizer.momentum=0"}, 256) == doctest::Approx(1.0));
  CHECK(rate_with({"optimizer.momentum=0.95"}, 256) == doctest::Approx(0.05));
}

TEST_CASE("an optimizer without a published rate, and an unknown batch, have no usual rate") {
  CHECK(rate_with({"optimizer.name=adagrad"}, 256) == 0);
  CHECK(rate_with({}, 0) == 0);
}

TEST_CASE("the usual rate is compared after lr_base_batch scaling") {
  CHECK(scaled_rate(optimizer_with({}), 512) == doctest::Approx(0.1));
  CHECK(scaled_rate(optimizer_with({"optimizer.lr_base_batch=128"}), 512) == doctest::Approx(0.4));
  CHECK(scaled_rate(optimizer_with({"optimizer.lr_base_batch=128", "optimizer.lr_scaling=sqrt"}),
                    512) == doctest::Approx(0.2));
}

}  // namespace
}  // namespace scaletrain::recipe
