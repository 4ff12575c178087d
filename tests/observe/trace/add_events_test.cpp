#include "lib/observe/trace/add_events.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace scaletrain::observe {
namespace {

// The text of a trace with two events more, "{}" if nothing was added; the base that was found.
nlohmann::json with_two_events(const std::string& trace, std::int64_t& base) {
  std::istringstream from(trace);
  std::ostringstream to;
  const bool is_done = add_events(from, to, [&](std::int64_t base_ns) {
    base = base_ns;
    return std::vector<std::string>{R"({"name": "a"})", R"({"name": "b"})"};
  });
  return is_done ? nlohmann::json::parse(to.str()) : nlohmann::json::object();
}

TEST_CASE("events are added before Kineto's, and the rest of the file stays") {
  std::int64_t base = 0;
  const nlohmann::json trace = with_two_events(
      "\n  {\n    \"schemaVersion\": 1,\n    \"baseTimeNanoseconds\": 1790857026000000000,\n"
      "  \"traceEvents\": [\n  {\"name\": \"aten::mm\"}\n  ],\n  \"traceName\": \"x\"\n}\n",
      base);
  CHECK(base == 1790857026000000000);
  CHECK(trace["traceEvents"].dump() == R"([{"name":"a"},{"name":"b"},{"name":"aten::mm"}])");
  CHECK(trace["traceName"] == "x");
  CHECK(trace["schemaVersion"] == 1);
}

TEST_CASE("a file without events or without a base is no trace") {
  std::int64_t base = 0;
  CHECK(with_two_events("", base).empty());
  CHECK(with_two_events("{\"schemaVersion\": 1}\n", base).empty());
  CHECK(with_two_events("{\n\"traceEvents\": [\n{\"name\": \"aten::mm\"}\n]}\n", base).empty());
}

}  // namespace
}  // namespace scaletrain::observe
