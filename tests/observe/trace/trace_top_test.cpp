#include "lib/observe/trace/trace_top.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "lib/observe/trace/merge_traces.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

// A rank that waits 1 ms for data and computes 3 ms, with a collective of which 1 of 2 ms is
// hidden.
std::string small_trace(int rank) {
  const auto span = [](const char* kind, const char* name, int track, int begin, int end) {
    return fmt::format(
        R"({{"ph": "X", "cat": "user_annotation", "name": "{}", "pid": 561, "tid": {},
             "ts": {}, "dur": {}, "args": {{"scaletrain": "{}"}}}})",
        name, track, begin, end - begin, kind);
  };
  return fmt::format(
      R"({{"baseTimeNanoseconds": 0, "distributedInfo": {{"rank": {}}}, "traceEvents": [
           {}, {}, {}, {},
           {{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 561, "tid": 561, "ts": 1000,
             "dur": 2500}}]}})",
      rank, span("row", "data_wait", 1, 0, 1000), span("row", "forward", 1, 1000, 4000),
      span("row", "exposed_communication", 1, 4000, 5000),
      span("collective", "gradients", 2, 3000, 5000));
}

TEST_CASE("costs are of all ranks and figures of each, from files of ranks and from a merged one") {
  const test::TemporaryFolder folder;
  const std::string zero = folder.write("0.json", small_trace(0)),
                    one = folder.write("1.json", small_trace(1)), both = folder.file("both.json");
  {
    std::ofstream to(both);
    merge_traces({zero, one}, to);
  }
  const auto apart = top_json(analyse_traces({zero, one}));
  CHECK(top_json(analyse_traces({both})) == apart);
  CHECK(apart["ranks"].size() == 2);
  CHECK(apart["ranks"][1].dump() ==
        R"({"rank":1,"window_ms":5.0,"rows_ms":{"data_wait":1.0,"exposed_communication":1.0,)"
        R"("forward":3.0},"communication_ms":2.0,"overlap":0.5,"idle":0.4})");
  CHECK(apart["costs"].back().dump() ==
        R"({"kind":"operation","name":"aten::mm","count":2,"self_ms":5.0,"share":1.0})");
}

TEST_CASE("the text has a table of costs and one of ranks") {
  const test::TemporaryFolder folder;
  TraceTop top = analyse_traces({folder.write("3.json", small_trace(3))});
  top.costs = largest_costs(top.costs, 1);
  const std::string text = top_text(top);
  CHECK(
      text.starts_with("kind        count  self ms  share    name\n"
                       "row         1      3.000    60.0 %   forward\n"
                       "collective  1      2.000    100.0 %  gradients\n"
                       "operation   1      2.500    100.0 %  aten::mm\n"));
  CHECK(text.find("forward 60.0 %, data_wait 20.0 %, exposed_communication 20.0 %") !=
        std::string::npos);
}

TEST_CASE("a trace without rows of a time ledger has costs and no ranks") {
  const test::TemporaryFolder folder;
  const TraceTop top = analyse_traces({folder.write(
      "t.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0,
                    "tid": 7, "ts": 1, "dur": 2}]})")});
  CHECK(top.ranks.empty());
  REQUIRE(top.costs.size() == 1);
  CHECK(top.costs[0].self_ns == 2000);
  CHECK(top_text(top).find("rank") == std::string::npos);
}

}  // namespace
}  // namespace scaletrain::observe
