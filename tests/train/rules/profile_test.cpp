#include "lib/train/rules/profile.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "lib/core/process/time_ledger.h"
#include "tests/temporary_folder.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

// Steps of which the number-th, from 0, multiplies number + 1 times, as they stand in the trace:
// "3 products", or that there is none.
std::string traced(const recipe::Profile& asked, int steps, std::string* log = nullptr) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = std::filesystem::path(folder.file("profile")) / "rank-2.json";
  const std::string said = testing::logged_apart([&] {
    Profile profile(asked, at::kCPU, {.rank = 2}, file.parent_path(), core::log_line);
    const at::Tensor tensor = at::ones({8, 8});
    for (int step = 0; step < steps; ++step) {
      profile.step_begins(step + 1);
      for (int product = 0; product <= step; ++product) at::mm(tensor, tensor);
      profile.step_ended();
    }
    profile.finish();
  });
  if (log != nullptr) *log = said;
  if (!std::filesystem::exists(file)) return "no file";
  const auto json = nlohmann::json::parse(std::ifstream(file));
  int products = 0;
  for (const auto& event : json.at("traceEvents"))
    products += event.value("name", "") == "aten::mm";
  return fmt::format("{} products", products);
}

TEST_CASE("a trace has the steps that were asked for") {
  CHECK(traced({.after = 0, .steps = 1}, 3) == "1 products");
  CHECK(traced({.after = 1, .steps = 2}, 6) == "5 products");
}

TEST_CASE("a trace that is not full when training ends is written") {
  std::string log;
  CHECK(traced({.after = 2, .steps = 9}, 4, &log) == "7 products");
  CHECK(log.find("profile: 2 steps are in ") != std::string::npos);
  CHECK(log.find("/profile/rank-2.json") != std::string::npos);
}

TEST_CASE("training that ends before the first step of the trace is a warning") {
  std::string log;
  CHECK(traced({.after = 2, .steps = 1}, 2, &log) == "no file");
  CHECK(
      log.find("warning: /profile: training ended after 2 steps, before the first of the trace") !=
      std::string::npos);
}

TEST_CASE("a trace that cannot be written is a warning") {
  const test::TemporaryFolder folder;
  std::ofstream(folder.file("profile")) << "a file in its place";
  const std::string said = testing::logged_apart([&] {
    Profile profile(recipe::Profile{.after = 0, .steps = 1}, at::kCPU, {}, folder.file("profile"),
                    core::log_line);
    profile.step_begins(1);
    profile.step_ended();
  });
  CHECK(said.find(fmt::format("warning: /profile: {} could not be written",
                              folder.file("profile") + "/rank-0.json")) != std::string::npos);
}

// Requests a trace of `asked` steps before step 1, beside the recipe's; returns the files.
std::vector<std::string> files_of_requests(const std::optional<recipe::Profile>& in_recipe,
                                           std::int64_t asked,
                                           const test::TemporaryFolder& folder) {
  testing::logged_apart([&] {
    Profile profile(in_recipe, at::kCPU, {.rank = 1, .world_size = 2, .backend = "gloo"},
                    folder.path, core::log_line);
    profile.ask(asked);
    for (int step = 1; step <= 6; ++step) {
      profile.step_begins(step);
      at::mm(at::ones({8, 8}), at::ones({8, 8}));
      profile.step_ended();
    }
    profile.finish();
  });
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST_CASE(
    "a requested trace is named by its first step, and the recipe's trace waits for its end") {
  using Names = std::vector<std::string>;
  const test::TemporaryFolder alone, both;
  CHECK(files_of_requests(std::nullopt, 2, alone) == Names{"step-1-rank-1.json"});
  CHECK(files_of_requests(recipe::Profile{.after = 1, .steps = 1}, 2, both) ==
        Names{"rank-1.json", "step-1-rank-1.json"});
  const auto later = nlohmann::json::parse(std::ifstream(both.file("rank-1.json")));
  CHECK(later.dump().find("ProfilerStep#3") != std::string::npos);
}

TEST_CASE(
    "a trace has its rank, its steps and the rows of the time ledger on the clock of Kineto") {
  core::TimeLedger ledger;
  const core::LedgerOfThread thread(&ledger);
  const test::TemporaryFolder folder;
  testing::logged_apart([&] {
    Profile profile(std::nullopt, at::kCPU, {.rank = 1, .world_size = 2, .backend = "gloo"},
                    folder.path, core::log_line);
    profile.ask(1);
    profile.step_begins(7);
    ledger.leave(core::TimeRow::kForward);
    at::mm(at::ones({64, 64}), at::ones({64, 64}));
    ledger.leave(core::TimeRow::kOther);
    profile.step_ended();
  });
  const auto json = nlohmann::json::parse(std::ifstream(folder.file("step-7-rank-1.json")));
  CHECK(json.at("distributedInfo").dump() == R"({"backend":"gloo","rank":1,"world_size":2})");
  std::map<std::string, std::pair<double, double>> times;  // begin and end in microseconds
  for (const auto& event : json.at("traceEvents")) {
    if (event.value("ph", "") != "X") continue;
    CHECK(event.value("cat", "") != "kernel");
    const double begin = event.at("ts").get<double>();
    times[event.at("name").get<std::string>()] = {begin, begin + event.at("dur").get<double>()};
  }
  REQUIRE(times.contains("aten::mm"));
  REQUIRE(times.contains("forward"));
  REQUIRE(times.contains("ProfilerStep#7"));
  constexpr double kClocksApart = 1000;  // Kineto's clock is calibrated to the wall clock
  CHECK(times["forward"].first < times["aten::mm"].first + kClocksApart);
  CHECK(times["forward"].second > times["aten::mm"].second - kClocksApart);
  CHECK(times["ProfilerStep#7"].first <= times["forward"].first);
}

TEST_CASE("a run writes the trace that its recipe asks for") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({R"(profile={"after": 1, "steps": 2})"});
  CHECK(testing::said_apart([&] { return testing::ended(recipe); }) == "code 0 after step 4");
  const auto file = std::filesystem::path(recipe.output) / "profile" / "rank-0.json";
  REQUIRE(std::filesystem::exists(file));
  const auto json = nlohmann::json::parse(std::ifstream(file));
  int backward = 0;
  for (const auto& event : json.at("traceEvents")) {
    backward += event.value("name", "").starts_with("autograd::engine::evaluate_function");
  }
  CHECK(backward > 0);  // autograd's threads are in it too
}

}  // namespace
}  // namespace scaletrain::train
