#include "lib/train/rules/profile.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/core/log.h"
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
    Profile profile(asked, at::kCPU, file, core::log_line);
    const at::Tensor tensor = at::ones({8, 8});
    for (int step = 0; step < steps; ++step) {
      profile.step_begins();
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
    Profile profile(recipe::Profile{.after = 0, .steps = 1}, at::kCPU,
                    std::filesystem::path(folder.file("profile")) / "rank-0.json", core::log_line);
    profile.step_begins();
    profile.step_ended();
  });
  CHECK(said.find(fmt::format("warning: /profile: {} could not be written",
                              folder.file("profile") + "/rank-0.json")) != std::string::npos);
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
