#include "lib/observe/trace/trace_events.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace scaletrain::observe {
namespace {

// "kind name track begin..end", or "none".
std::string timed_text(const char* json) {
  const std::optional<TimedEvent> event = timed_event(nlohmann::json::parse(json));
  if (!event) return "none";
  return fmt::format("{} {} ({}) {}..{} of {}", to_text(event->kind), event->name, event->track,
                     event->time.begin, event->time.end, event->process);
}

TEST_CASE("an event with a duration has a kind by its category, and times in nanoseconds") {
  CHECK(timed_text(R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 8,
                       "ts": 5065248666828.884, "dur": 1.5})") ==
        "operation aten::mm (7 8) 5065248666828884..5065248666830384 of 7");
  const auto kind = [](const char* category, const char* arguments) {
    const std::string text =
        timed_text(fmt::format(R"({{"ph": "X", "cat": "{}", "name": "n", "pid": 0, "tid": "t",
                                    "ts": 0, "dur": 1, "args": {}}})",
                               category, arguments)
                       .c_str());
    return text.substr(0, text.find(' '));
  };
  CHECK(kind("kernel", "{}") == "kernel");
  CHECK(kind("gpu_memcpy", "{}") == "kernel");
  CHECK(kind("user_annotation", "{}") == "span");
  CHECK(kind("user_annotation", R"({"scaletrain": "row"})") == "row");
  CHECK(kind("user_annotation", R"({"scaletrain": "collective"})") == "collective");
  CHECK(kind("user_annotation", R"({"scaletrain": "step"})") == "step");
  CHECK(kind("user_annotation", R"({"scaletrain": "thread"})") == "span");
  CHECK(kind("Trace", "{}") == "none");
}

TEST_CASE("events without a duration and texts in places of numbers are left out") {
  for (const char* const json :
       {R"({"ph": "M", "cat": "cpu_op", "name": "n", "ts": 0, "dur": 1})",
        R"({"ph": "X", "cat": "cpu_op", "name": "n", "ts": 0})",
        R"({"ph": "X", "cat": "cpu_op", "name": "n", "ts": "0", "dur": 1})",
        R"({"ph": "X", "cat": "cpu_op", "name": "n", "ts": 0, "dur": -1})", R"([])"}) {
    CAPTURE(json);
    CHECK(timed_text(json) == "none");
  }
}

}  // namespace
}  // namespace scaletrain::observe
