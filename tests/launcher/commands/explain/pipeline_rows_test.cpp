#include "launcher/commands/explain/pipeline_rows.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {
namespace {

std::string text_of(const recipe::Parallel& parallel, std::int64_t micro_batches) {
  std::string text;
  for (const Explained& row :
       pipeline_rows(parallel, {.per_device = 1, .accumulate = micro_batches, .global = 8})) {
    text += row.name + ": " + row.value + "\n";
  }
  return text;
}

TEST_CASE("a job without a pipeline has no rows of one") { CHECK(text_of({}, 8).empty()); }

TEST_CASE("a pipeline's rows are those of its schedule on paper") {
  recipe::Parallel parallel;
  parallel.pipeline = 4;
  CHECK(text_of(parallel, 8) ==
        "pipeline stages: 4\n"
        "micro-batches of a step: 8\n"
        "pipeline idle share: 27.3 %\n"
        "micro-batches held by rank: 4 3 2 1\n");
  parallel.schedule = "interleaved";
  CHECK(text_of(parallel, 8) ==
        "pipeline stages: 8, 2 of each rank\n"
        "micro-batches of a step: 8\n"
        "pipeline idle share: 15.8 %\n"
        "micro-batches held by rank: 11 9 7 5\n");
}

}  // namespace
}  // namespace scaletrain::launcher
