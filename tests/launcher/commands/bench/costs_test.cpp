#include "launcher/commands/bench/costs.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json memory(std::int64_t parameters, std::int64_t activations) {
  return {{"peak_bytes",
           {{"total", parameters + activations},
            {"parameters", parameters},
            {"activations", activations}}}};
}

TEST_CASE("what one rank waits for is a share of its exchanges") {
  CHECK(exposed_text({{"step_s", 0.25},
                      {"exchange_s", 0.1},
                      {"exposed_s", 0.0125},
                      {"calls", 35},
                      {"bytes", 12'000'000}}) ==
        "a step: 250 ms\n"
        "its exchanges: 100 ms, 35 of 12 MB together\n"
        "exposed: 12.5 ms, 12.5 % of the exchanges\n");
  CHECK(exposed_text(
            {{"step_s", 1.0}, {"exchange_s", 0.0}, {"exposed_s", 0.0}, {"calls", 0}, {"bytes", 0}})
            .ends_with("0.0 % of the exchanges\n"));
}

}  // namespace

TEST_CASE("memory is shown by kind, and how many times less a technique needs") {
  const BenchReport report{
      .what = "memory",
      .recipe = "r",
      .ranks = 2,
      .global_batch = 8,
      .costs = {
          {.technique = {"as it is", {}}, .answer = memory(1000000, 3000000)},
          {.technique = {"recompute all", {"recompute=all"}}, .answer = memory(1000000, 600000)},
          {.technique = {"bf16", {"precision=bf16"}}, .answer = {}, .exit_status = 71}}};
  CHECK(bench_text(report) ==
        "technique      peak MB     parameters  activations  less\n"
        "as it is       4.00        1.00        3.00         x1.00\n"
        "recompute all  1.60        1.00        0.60         x2.50\n"
        "bf16           failed: 71\n");
  const Json json = Json::parse(bench_json(report));
  CHECK(json.at("ranks") == 2);
  CHECK(json.at("costs").at(1).at("times") == 2.5);
  CHECK(json.at("costs").at(1).at("set") == Json({"recompute=all"}));
  CHECK(json.at("costs").at(2).dump() ==
        R"({"technique":"bf16","set":["precision=bf16"],"exit_code":71})");
}

TEST_CASE("a batch that was found is named with its technique") {
  Json answer{{"step_s", 0.5}};
  answer["per_device"] = 16;
  const BenchReport report{.what = "speed",
                           .recipe = "r",
                           .ranks = 1,
                           .global_batch = 64,
                           .costs = {{.technique = {"as it is", {}}, .answer = answer}}};
  CHECK(bench_text(report) ==
        "technique               steps/s  samples/s  faster\n"
        "as it is (16 a device)  2        128        x1.00\n");
  CHECK(Json::parse(bench_json(report)).at("costs").at(0).at("per_device") == 16);
}

TEST_CASE("speed is shown as steps and samples a second") {
  const BenchReport report{
      .what = "speed",
      .recipe = "r",
      .ranks = 1,
      .global_batch = 64,
      .costs = {{.technique = {"as it is", {}}, .answer = {{"step_s", 0.5}}},
                {.technique = {"recompute all", {}}, .answer = {{"step_s", 0.625}}}}};
  CHECK(bench_text(report) ==
        "technique      steps/s  samples/s  faster\n"
        "as it is       2        128        x1.00\n"
        "recompute all  1.6      102.4      x0.80\n");
}

}  // namespace scaletrain::launcher
