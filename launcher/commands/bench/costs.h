// Costs of a recipe with each technique, as rows for the console and as JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/recipe/techniques.h"

namespace scaletrain::launcher {

struct Cost {
  recipe::Technique technique;
  nlohmann::ordered_json
      answer;  // answer of the worker (app/worker/bench_command.h); null: it failed
  int exit_status = 0;
};

struct BenchReport {
  std::string what;  // "memory", "speed"
  std::string recipe;
  int ranks = 1;
  std::int64_t global_batch = 0;  // samples of a step
  std::vector<Cost> costs;        // the first is the unchanged recipe
};

// Table of MB by kind and the reduction compared with the unchanged recipe; or of steps and samples
// per second and the speed-up. A technique that failed has its exit code.
std::string bench_text(const BenchReport& report);
// {"recipe", "ranks", "global_batch", "costs": [{"technique", "set", "peak_bytes"|"step_s",
// "times"}]}, where "times" is the ratio of the table; "per_device" if it was searched. A failed
// technique has only "exit_code".
std::string bench_json(const BenchReport& report);

// Exposed communication of a rank, from {"step_s", "exchange_s", "exposed_s", "calls", "bytes"}.
std::string exposed_text(const nlohmann::ordered_json& answer);

}  // namespace scaletrain::launcher
