#include "launcher/commands/plan/plan_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::launcher {
namespace {

PlanReport report_of() {
  PlanReport report{.target = {.device = "h100", .nproc = 8, .nodes = 2},
                    .accuracy = "no run on h100 was scored yet"};
  Prediction& prediction = report.prediction;
  prediction.memory = {.shares = {{"parameters", 1.7e9}, {"activations", 38.9e9}},
                       .capacity = 80e9};
  prediction.time = {
      .forward = 0.5, .backward = 1, .optimizer = 0.04, .communication = 0.8, .exposed = 0.3};
  prediction.cost = {.seconds = 7200,
                     .device_hours = 32,
                     .kwh = 22.4,
                     .money = 80,
                     .samples_per_s = 34.8,
                     .data_bytes_per_s = 38e6};
  prediction.saves = {.bytes = 40e9, .write_s = 20, .interval_s = 1320};
  prediction.mtbf_hours = 24;
  prediction.steps = 3913;
  prediction.mfu = 0.43;
  prediction.notes = {"step time: 40 % of the peak is assumed"};
  return report;
}

}  // namespace

TEST_CASE("a prediction says whether it fits, how long it takes and what it needs") {
  CHECK(
      plan_text(report_of()) ==
      "fits: 40.6 GB of 80 GB a rank (margin 39.4 GB)\n"
      "  parameters   1.7 GB\n"
      "  activations  38.9 GB\n"
      "step 1.84 s (no run on h100 was scored yet)\n"
      "  forward 500 ms  backward 1 s  optimizer 40 ms  communication exposed 300 ms (of 800 ms)\n"
      "3913 steps: 2h 00m, 32 device hours, at most 22.4 kWh, cost 80.00\n"
      "MFU 43.0 %\n"
      "needs: 34.8 samples/s, 38 MB/s of data\n"
      "  a checkpoint has 40 GB and takes 20 s at 2 GB/s; one each 22m 00s loses least time "
      "(Young/Daly, MTBF 24 h)\n"
      "note: step time: 40 % of the peak is assumed\n");
}

TEST_CASE("changes have their step time, their memory and the flags that make them") {
  PlanReport report = report_of();
  report.heading = "cheaper or faster:";
  RankedVariant change{.variant = {"recompute all", {"recompute=null", "recompute=all"}},
                       .prediction = report.prediction};
  change.prediction.time.backward = 0.632;
  report.changes = {change};
  const std::string text = plan_text(report);
  CHECK(text.find("cheaper or faster:\n  1. recompute all: step 1.47 s (-20.0 %), 40.6 GB a rank\n"
                  "     --set recompute=null --set recompute=all\n") != std::string::npos);
  report.changes.clear();
  CHECK(plan_text(report).find("  none of those that were tried\n") != std::string::npos);
}

TEST_CASE("what does not fit says how much is missing") {
  PlanReport report = report_of();
  report.prediction.memory.capacity = 40e9;
  CHECK(plan_text(report).starts_with("does not fit: 40.6 GB of 40 GB a rank (missing 600 MB)\n"));
  CHECK(plan_json(report).at("fits") == false);
}

TEST_CASE("the JSON has the figures in bytes and seconds") {
  const nlohmann::ordered_json json = plan_json(report_of());
  CHECK(json.at("device") == "h100");
  CHECK(json.at("memory_bytes") == 40.6e9);
  CHECK(json.at("memory").at("parameters") == 1.7e9);
  CHECK(json.at("step").at("exposed_s") == 0.3);
  CHECK(json.at("checkpoint_interval_s") == 1320);
  CHECK(json.at("changes").empty());
}

}  // namespace scaletrain::launcher
