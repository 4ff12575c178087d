#include "lib/observe/trace/read_trace.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

// "header: names of the events"
std::string trace_text(const std::string& text) {
  std::istringstream stream(text);
  std::string names;
  const nlohmann::json header = read_trace(stream, "t.json", [&](nlohmann::json& event) {
    names += " " + event.at("name").get<std::string>();
  });
  return header.dump() + ":" + names;
}

TEST_CASE("events are read in order, objects inside them and other arrays are not events") {
  CHECK(trace_text(R"({"deviceProperties": [{"id": 0}],
                       "traceEvents": [{"name": "a", "args": {"name": "inner"}},
                                       {"name": "b", "args": {"list": [{"name": "c"}]}}],
                       "traceName": {"name": "d"}})") ==
        R"({"deviceProperties":[{"id":0}],"traceName":{"name":"d"}}: a b)");
  CHECK(trace_text(R"({"traceEvents": []})") == "{}:");
}

TEST_CASE("a file that is no trace is named") {
  for (const char* const text : {"", "[]", "{}", R"({"traceEvents": [{"name": "a")"}) {
    CAPTURE(text);
    try {
      trace_text(text);
      FAIL("was read");
    } catch (const core::DataError& error) {
      CHECK(std::string(error.what()).starts_with("t.json: is not a trace"));
    }
  }
}

TEST_CASE("a trace without distributedInfo has the rank that the caller names") {
  CHECK(rank_of_trace({{"distributedInfo", {{"rank", 3}}}}, 7) == 3);
  CHECK(rank_of_trace({{"distributedInfo", {{"rank", "3"}}}}, 7) == 7);
  CHECK(rank_of_trace(nlohmann::json::object(), 7) == 7);
}

TEST_CASE("names of trace files have a step and a rank, or a rank alone") {
  const auto parsed = [](const std::string& name) {
    const TraceName parts = parse_trace_name(name);
    return fmt::format("{} {}", parts.step, parts.rank);
  };
  CHECK(parsed("step-12-rank-3.json") == "12 3");
  CHECK(parsed("rank-3.json") == "-1 3");
  for (const char* const other :
       {"", "rank-.json", "rank-3.json.kineto", "step-1-rank-2.json.partial", "step-1.json",
        "step-x-rank-1.json", "xrank-1.json"}) {
    CAPTURE(other);
    CHECK(parsed(other) == "-1 -1");
  }
}

std::string newest_text(const test::TemporaryFolder& run) {
  std::string text;
  for (const auto& path : newest_traces(run.path)) text += path.filename().string() + " ";
  return text;
}

TEST_CASE("the newest traces of a run are those written last, in the order of ranks") {
  const test::TemporaryFolder run;
  CHECK(newest_text(run).empty());
  for (const int rank : {0, 2, 10}) run.write(fmt::format("profile/rank-{}.json", rank), "");
  CHECK(newest_text(run) == "rank-0.json rank-2.json rank-10.json ");
  const auto now = std::filesystem::file_time_type::clock::now();
  for (const int step : {5, 40}) {
    for (const int rank : {0, 1}) {
      const std::string file =
          run.write(fmt::format("profile/step-{}-rank-{}.json", step, rank), "");
      std::filesystem::last_write_time(file, now - std::chrono::hours(step));
    }
  }
  CHECK(newest_text(run) == "step-5-rank-0.json step-5-rank-1.json ");
}

}  // namespace
}  // namespace scaletrain::observe
