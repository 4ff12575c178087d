#include "lib/observe/trace/merge_traces.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

// One operation, a flow event, names of process and thread, and one of Kineto's own.
std::string trace_of_rank(int rank, std::int64_t base_ns) {
  return fmt::format(
      R"trace({{"baseTimeNanoseconds": {}, "distributedInfo": {{"rank": {}, "world_size": 2}},
           "traceEvents": [
             {{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 561, "tid": 562,
               "ts": 7.125, "dur": 2}},
             {{"ph": "s", "id": 4, "cat": "fwdbwd", "name": "fwdbwd", "pid": 561, "tid": 562,
               "ts": 8}},
             {{"ph": "M", "name": "process_name", "pid": 561, "tid": 0, "ts": 0,
               "args": {{"name": "python"}}}},
             {{"ph": "M", "name": "thread_name", "pid": 561, "tid": 562, "ts": 0,
               "args": {{"name": "thread 562"}}}},
             {{"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
               "tid": "PyTorch Profiler", "ts": 0, "dur": 9}}]}})trace",
      base_ns, rank);
}

TEST_CASE("processes of a merged trace are ranks, and their times count from one base") {
  const test::TemporaryFolder folder;
  const std::string first = folder.write("a.json", trace_of_rank(1, 5'000'000)),
                    second = folder.write("b.json", trace_of_rank(0, 7'000'000));
  std::ostringstream to;
  merge_traces({first, second}, to);
  const nlohmann::json merged = nlohmann::json::parse(to.str());
  CHECK(merged["baseTimeNanoseconds"] == 5'000'000);
  std::string names, operations, flows;
  for (const nlohmann::json& event : merged["traceEvents"]) {
    const std::string name = event["name"];
    if (name == "process_name") {
      names += fmt::format("{}: {}, ", event["pid"].get<int>(), event["args"]["name"].dump());
    }
    if (name == "aten::mm") {
      operations += fmt::format("{} at {}, ", event["pid"].get<int>(), event["ts"].get<double>());
    }
    if (name == "fwdbwd") flows += fmt::format("{} ", event["id"].get<std::int64_t>());
    CHECK(name != "PyTorch Profiler (0)");
  }
  CHECK(names == R"(1: "rank 1", 0: "rank 0", )");
  CHECK(operations == "1 at 7.125, 0 at 2007.125, ");  // 2 ms later
  CHECK(flows == "4294967300 4 ");                     // 2^32 + 4
}

TEST_CASE("two traces of one rank are not merged") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("a.json", trace_of_rank(1, 0));
  std::ostringstream to;
  try {
    merge_traces({file, file}, to);
    FAIL("merged");
  } catch (const core::UsageError& error) {
    CHECK(std::string(error.what())
              .starts_with(fmt::format("{}: has rank 1, as {} has", file, file)));
  }
}

}  // namespace
}  // namespace scaletrain::observe
