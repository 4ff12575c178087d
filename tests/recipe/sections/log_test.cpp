#include "lib/recipe/sections/log.h"

#include <doctest/doctest.h>

#include "lib/recipe/load.h"
#include "tests/recipe/recipe_support.h"

namespace scaletrain::recipe {

TEST_CASE("trackers are a name or a list of names, and none by default") {
  const auto log_of = [](const std::vector<std::string>& overrides) {
    return parse_recipe(minimal_recipe(), "r.json", overrides).log;
  };
  CHECK(log_of({}).to.empty());
  CHECK(log_of({"log.to=csv"}).to == std::vector<std::string>{"csv"});
  const Log log = log_of({R"(log.to=["tensorboard", "prometheus"])", "log.port=9400",
                          "log.textfile_folder=/var/prom"});
  CHECK(log.to == std::vector<std::string>{"tensorboard", "prometheus"});
  CHECK(log.port == 9400);
  CHECK(log.textfile_folder == "/var/prom");
  CHECK(log.every.value == 10);
}

TEST_CASE("a tracker that is unknown or there twice is refused") {
  const std::string allowed =
      "one of: \"tensorboard\", \"csv\", \"prometheus\", \"wandb\", \"mlflow\", \"trackio\", "
      "\"mlperf\", or a list of them";
  CHECK(error_of(minimal_recipe(), {"log.to=excel"}) ==
        "--set log.to: \"excel\" is not a choice here\n  use " + allowed);
  CHECK(error_of(minimal_recipe(), {R"(log.to=["csv", "csv"])"}) ==
        "--set log.to: /log/to/1: \"csv\" occurs twice\n  name it once");
}

TEST_CASE("an editor completes the names of trackers and events") {
  const std::string schema = json_schema();
  for (const char* const name : {"trackio", "mlperf", "restart"}) {
    CHECK(schema.find("\"" + std::string(name) + "\"") != std::string::npos);
  }
}

TEST_CASE("events go to a URL, to the one in a variable, or to a command") {
  const Log log = parse_recipe(minimal_recipe(), "r.json",
                               {"log.webhook=env:HOOK", "log.on_event=cat >> events",
                                R"(log.events=["failure", "end"])"})
                      .log;
  CHECK(log.webhook == "env:HOOK");
  CHECK(log.on_event == "cat >> events");
  CHECK(log.events == std::vector<std::string>{"failure", "end"});
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"log.webhook=https://host/hook"}).log.webhook ==
        "https://host/hook");
}

TEST_CASE(
    "a webhook that is no URL or carries a secret, and events without a receiver, are refused") {
  CHECK(error_of(minimal_recipe(), {"log.webhook=host/hook"}) ==
        "--set log.webhook: is not a URL\n"
        "  use https://..., or env:NAME for the contents of an environment variable");
  CHECK(error_of(minimal_recipe(), {"log.webhook=https://me:word@host/hook"}) ==
        "--set log.webhook: carries a secret, which would be stored with the run\n"
        "  put the URL into an environment variable and use env:NAME");
  CHECK(error_of(minimal_recipe(), {"log.events=end"}) ==
        "--set log.events: is for log.webhook and log.on_event\n"
        "  add one of them, or leave the events out");
}

TEST_CASE("a port and a folder for textfiles need Prometheus") {
  CHECK(error_of(minimal_recipe(), {"log.port=9400"}) ==
        "--set log.port: is for Prometheus\n"
        "  add \"prometheus\" to log.to, or leave the port out");
  CHECK(error_of(minimal_recipe(), {"log.to=csv", "log.textfile_folder=/t"}) ==
        "--set log.textfile_folder: is for Prometheus\n"
        "  add \"prometheus\" to log.to, or leave the folder out");
}

TEST_CASE("images are written for TensorBoard, or as the recipe says") {
  const auto writes_images = [](const std::vector<std::string>& overrides) {
    return parse_recipe(minimal_recipe(), "r.json", overrides).log.writes_images();
  };
  CHECK_FALSE(writes_images({}));
  CHECK_FALSE(writes_images({"log.to=csv"}));
  CHECK(writes_images({"log.to=tensorboard"}));
  CHECK_FALSE(writes_images({"log.to=tensorboard", "log.images=false"}));
  CHECK(writes_images({"log.images=true"}));
}

TEST_CASE("histograms have an interval in steps or epochs, in any layout") {
  const Log log = parse_recipe(minimal_recipe(), "r.json", {"log.histograms.steps=100"}).log;
  REQUIRE(log.histograms.has_value());
  CHECK(log.histograms->value == 100);
  CHECK(parse_recipe(minimal_recipe(), "r.json", {"log.histograms.epochs=1", "parallel.shard=2"})
            .log.histograms->unit == Duration::Unit::kEpochs);
}

}  // namespace scaletrain::recipe
