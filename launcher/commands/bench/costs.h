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
  nlohmann::ordered_json answer;  // the worker's (app/worker/bench_command.h); null: it failed
  int exit_status = 0;
};

struct BenchReport {
  std::string what;  // "memory", "speed"
  std::string recipe;
  int ranks = 1;
  std::int64_t global_batch = 0;  // samples of a step
  std::vector<Cost> costs;        // the first is the recipe as it is
};

// MB by kind and how many times less than the recipe as it is; or steps and samples a second, and
// how many times faster. A technique that failed has its exit code.
std::string bench_text(const BenchReport& report);
// {"recipe", "ranks", "global_batch", "costs": [{"technique", "set", "peak_bytes"|"step_s",
// "times"}]}, where "times" is as in the text; "per_device" where that was found; of one that
// failed "exit_code" alone.
std::string bench_json(const BenchReport& report);

// Exposed communication of a rank, from {"step_s", "exchange_s", "exposed_s", "calls", "bytes"}.
std::string exposed_text(const nlohmann::ordered_json& answer);

}  // namespace scaletrain::launcher
