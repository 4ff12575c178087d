#include "launcher/commands/trace/trace_wait.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <stdexcept>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

void write_trace_of(const test::TemporaryFolder& run, int step, int rank) {
  run.write(fmt::format("profile/step-{}-rank-{}.json", step, rank),
            fmt::format(R"({{"distributedInfo": {{"rank": {}, "world_size": 2}},
                            "traceEvents": []}})",
                        rank));
}

TEST_CASE("a trace is complete when all of its ranks have written, and older ones do not count") {
  const test::TemporaryFolder run;
  for (const int rank : {0, 1}) write_trace_of(run, 3, rank);
  run.write("profile/rank-0.json", "the recipe's");
  const TracesBefore before = traces_of(run.path);
  CHECK(before.size() == 2);
  int pauses = 0;
  const auto files = await_trace(run.path, before, [&] {
    if (++pauses == 1) run.write("profile/step-9-rank-1.json.partial", "half a file");
    if (pauses == 2) write_trace_of(run, 9, 1);
    if (pauses == 3) write_trace_of(run, 9, 0);
    REQUIRE(pauses < 4);
  });
  REQUIRE(files.size() == 2);
  CHECK(files[0] == run.path / "profile/step-9-rank-0.json");
  CHECK(files[1] == run.path / "profile/step-9-rank-1.json");
  CHECK(pauses == 3);
}

TEST_CASE("waiting for a trace ends when the caller gives up") {
  const test::TemporaryFolder run;
  CHECK_THROWS_AS(await_trace(run.path, {}, [] { throw std::runtime_error("ended"); }),
                  std::runtime_error);
}

}  // namespace
}  // namespace scaletrain::launcher
