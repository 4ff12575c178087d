#include "lib/dist/gloo_device.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>

#include <filesystem>
#include <string>

#include "lib/core/process/cores.h"
#include "tests/dist/ranks.h"

namespace {

using namespace scaletrain;

int threads_of_policy(int policy) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (sched_getscheduler(std::stoi(task.path().filename().string())) == policy) ++count;
  }
  return count;
}

TEST_CASE("Gloo's thread takes no core from others where ranks outnumber the cores") {
  for (const bool crowded : {false, true}) {
    const auto results = testing::run_ranks({.world_size = 1}, [&](core::WorkerEnv env) {
      env.local_world_size = core::usable_cores() + (crowded ? 1 : 0);
      const int before = threads_of_policy(SCHED_OTHER);
      const auto device = dist::open_gloo_device(env);
      return fmt::format("{} {}", threads_of_policy(SCHED_OTHER) - before,
                         threads_of_policy(SCHED_BATCH));
    });
    CHECK(results[0].text == (crowded ? "0 1" : "1 0"));
  }
}

}  // namespace
