// Steps of replicas that train alone between exchanges (lib/train/run/step.h).
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/process/beat.h"
#include "lib/train/build/build.h"
#include "lib/train/run/step.h"
#include "tests/dist/ranks.h"
#include "tests/train/run/run_support.h"

namespace scaletrain::train {
namespace {

using namespace std::chrono_literals;

}  // namespace

TEST_CASE("where replicas train alone the norm is the root of the mean of their squares") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({R"(sync={"name": "periodic", "steps": 2})"});
  double mean = 0, least = 1e9, most = 0;
  std::vector<double> said;
  for (const auto& result : testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
         const auto run = build_run(recipe, env, std::nullopt, {});
         StepRunner steps(step_parts(*run), /*late=*/false);
         steps.run(0, 0.1, 0);
         const double own = run->engine->squared_norm().item<double>();
         std::string text = fmt::format("{} {}", own, steps.next()->grad_norm);
         run->mesh->end("end");
         return text;
       })) {
    double own = 0, norm = 0;
    std::istringstream(result.text) >> own >> norm;
    mean += own / 2;
    least = std::min(least, own);
    most = std::max(most, own);
    said.push_back(norm);
  }
  CHECK(most > 1.01 * least);  // each has gradients of its own
  REQUIRE(said.size() == 2);
  for (const double norm : said) CHECK(norm == doctest::Approx(std::sqrt(mean)).epsilon(1e-6));
}

// Rank 1 comes late to the second step, behind which the replicas meet.
TEST_CASE("the launcher sees a decoupled replica that waits for the others") {
  const testing::TinyRun tiny;
  const recipe::Recipe recipe = tiny.recipe({R"(sync={"name": "diloco", "steps": 2})"});
  const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
    const core::Descriptor file = core::make_beat_file();
    const auto run = build_run(recipe, env, std::nullopt, core::Beat(file.get()));
    StepRunner steps(step_parts(*run), /*late=*/false);
    std::array<std::atomic<bool>, 2> has_waited{};
    std::atomic<int> step = -1;
    std::jthread watch([&](const std::stop_token& stop) {
      const core::BeatReader reader(file.get());
      while (!stop.stop_requested()) {
        const bool waits = reader.state().phase == core::Phase::kWaiting;
        const int now = step;
        if (waits && now >= 0) has_waited[static_cast<std::size_t>(now)] = true;
        std::this_thread::sleep_for(1ms);
      }
    });
    std::string said;
    for (int i = 0; i < 2; ++i) {
      if (i == 1 && env.rank == 1) std::this_thread::sleep_for(300ms);
      step = i;
      steps.run(i, 0.1, 0);
      step = -1;
      const core::BeatReader reader(file.get());
      said += fmt::format("{} {}, ", has_waited[static_cast<std::size_t>(i)].load(),
                          to_text(reader.state().phase));
    }
    return said;
  });
  CHECK(results[0].text == "false compute, true compute, ");
}

}  // namespace scaletrain::train
