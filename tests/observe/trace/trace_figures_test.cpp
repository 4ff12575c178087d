#include "lib/observe/trace/trace_figures.h"

#include <doctest/doctest.h>

namespace scaletrain::observe {
namespace {

TEST_CASE("a planted overlap, a planted wait and the rows are found with their lengths") {
  FiguresOfTrace trace;
  const auto add = [&](EventKind kind, const char* name, std::int64_t begin, std::int64_t end) {
    trace.add({.kind = kind, .name = name, .time = {begin, end}});
  };
  add(EventKind::kRow, "data_wait", 1000, 1100);
  add(EventKind::kRow, "forward", 1100, 1400);
  add(EventKind::kRow, "backward", 1400, 2000);
  add(EventKind::kRow, "exposed_communication", 2000, 2150);
  add(EventKind::kRow, "optimizer", 2150, 2250);
  add(EventKind::kRow, "other", 2250, 2300);
  add(EventKind::kCollective, "gradients 0", 1700, 1900);  // hidden: 200
  add(EventKind::kCollective, "gradients 1", 1850, 2150);  // hidden until 2000
  add(EventKind::kOperation, "aten::mm", 1100, 1400);      // no row
  const TraceFigures figures = trace.figures();
  CHECK(figures.window_ns == 1300);
  CHECK(figures.rows.at("forward") == 300);
  CHECK(figures.rows.at("backward") == 600);
  CHECK(figures.rows.size() == 6);
  CHECK(figures.communication_ns == 450);  // 1700 to 2150
  CHECK(figures.overlap_ns == 300);        // 1700 to 2000
  CHECK(figures.idle_ns == 250);           // data wait 100, exposed communication 150
}

TEST_CASE("time between rows is idle, and a trace without rows has no figures") {
  FiguresOfTrace trace;
  trace.add({.kind = EventKind::kRow, .name = "forward", .time = {0, 10}});
  trace.add({.kind = EventKind::kRow, .name = "forward", .time = {30, 40}});
  CHECK(trace.figures().window_ns == 40);
  CHECK(trace.figures().idle_ns == 20);
  CHECK(FiguresOfTrace().figures().window_ns == 0);
  CHECK(FiguresOfTrace().figures().rows.empty());
}

}  // namespace
}  // namespace scaletrain::observe
