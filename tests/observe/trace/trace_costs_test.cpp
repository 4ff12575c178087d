#include "lib/observe/trace/trace_costs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

namespace scaletrain::observe {
namespace {

TimedEvent cost_event(EventKind kind, const char* name, const char* track, std::int64_t begin,
                      std::int64_t end) {
  return {.kind = kind, .name = name, .track = track, .time = {begin, end}};
}

std::string costs_text(const TraceCosts& costs) {
  std::string text;
  for (const TraceCost& row : costs.rows()) {
    text += fmt::format("{} {} {} times {} ns {:.0f} %\n", to_text(row.kind), row.name, row.count,
                        row.self_ns, 100 * row.share);
  }
  return text;
}

TEST_CASE("self time leaves out the events inside, on the same thread of the same trace") {
  constexpr EventKind kOp = EventKind::kOperation;
  TraceCosts costs;
  costs.add(0, cost_event(kOp, "mm", "1 1", 10, 40));      // inside linear: 30
  costs.add(0, cost_event(kOp, "linear", "1 1", 0, 100));  // 100 - 30 - 20 = 50
  costs.add(0, cost_event(kOp, "add", "1 1", 40, 60));     // 20 - 5 = 15
  costs.add(0, cost_event(kOp, "empty", "1 1", 45, 50));   // inside add: 5
  costs.add(0, cost_event(kOp, "mm", "1 2", 0, 60));       // another thread: 60
  costs.add(1, cost_event(kOp, "mm", "1 1", 20, 60));      // another trace: 40
  CHECK(costs_text(costs) ==
        "operation mm 3 times 130 ns 65 %\n"  // 30 + 60 + 40 of 200
        "operation linear 1 times 50 ns 25 %\n"
        "operation add 1 times 15 ns 8 %\n"
        "operation empty 1 times 5 ns 2 %\n");
}

TEST_CASE("shares are of a kind, and steps are no costs") {
  TraceCosts costs;
  costs.add(0, cost_event(EventKind::kStep, "ProfilerStep#1", "1 s", 0, 100));
  costs.add(0, cost_event(EventKind::kRow, "forward", "1 r", 0, 75));
  costs.add(0, cost_event(EventKind::kRow, "backward", "1 r", 75, 100));
  costs.add(0, cost_event(EventKind::kKernel, "gemm", "0 7", 0, 8));
  CHECK(costs_text(costs) ==
        "row forward 1 times 75 ns 75 %\n"
        "row backward 1 times 25 ns 25 %\n"
        "kernel gemm 1 times 8 ns 100 %\n");
}

TEST_CASE("spans of different kinds on one thread are nested too") {
  TraceCosts costs;
  costs.add(0, cost_event(EventKind::kSpan, "checkpoint write", "1 1", 0, 50));
  costs.add(0, cost_event(EventKind::kOperation, "copy", "1 1", 10, 30));
  CHECK(costs_text(costs) ==
        "span checkpoint write 1 times 30 ns 100 %\n"
        "operation copy 1 times 20 ns 100 %\n");
}

}  // namespace
}  // namespace scaletrain::observe
