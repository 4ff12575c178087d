#include "lib/train/trainer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "lib/train/build.h"
#include "tests/count_reads.h"
#include "tests/dist/ranks.h"
#include "tests/train/run_support.h"

namespace scaletrain::train {
namespace {

// metrics.jsonl without what the clock says.
std::string lines_of(const std::string& folder) {
  std::ifstream file(folder + "/metrics.jsonl");
  std::string text;
  for (std::string line; std::getline(file, line);) {
    auto json = nlohmann::json::parse(line);
    for (const char* measured : {"samples_per_s", "data_time", "compute_time", "read_time",
                                 "decode_time", "augment_time", "memory_bytes", "time"}) {
      json.erase(measured);
    }
    text += json.dump() + "\n";
  }
  return text;
}

struct Trained {
  std::string lines;
  std::vector<std::string> said;  // by each rank
};

// 24 steps on two ranks: a line every 3, an evaluation every 7, checks of slow ranks after 10 and
// 20, a save every 11.
Trained train(bool late) {
  const testing::TinyRun tiny;
  Trained trained;
  for (const auto& result :
       testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& given) {
         core::WorkerEnv env = given;
         env.console_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
         Trainer trainer(build_run(tiny.recipe({"steps=24", "log.every={\"steps\": 3}",
                                                "validate.every={\"steps\": 7}",
                                                "checkpoint.every={\"steps\": 11}"}),
                                   env, std::nullopt, {}),
                         env, std::nullopt, late);
         core::ExitCode code{};
         const int reads = testing::count_reads([&] { code = trainer.run(); });
         return fmt::format("{} reads, exit code {}", reads, static_cast<int>(code));
       })) {
    trained.said.push_back(result.text);
  }
  trained.lines = lines_of(tiny.path("run"));
  return trained;
}

}  // namespace

TEST_CASE("what is written is the same where everything comes late, and nothing is waited for") {
  const Trained now = train(false), late = train(true);
  CHECK(now.lines == late.lines);
  CHECK(std::count(now.lines.begin(), now.lines.end(), '\n') == 9 + 4);  // 1, 3, 6 ...; 7 ... 24
  CHECK(now.said == late.said);
  CHECK(late.said == std::vector<std::string>(2, "0 reads, exit code 0"));
}

}  // namespace scaletrain::train
