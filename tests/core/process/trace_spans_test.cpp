#include "lib/core/process/trace_spans.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <thread>

#include "lib/core/process/time_ledger.h"

using scaletrain::core::LedgerOfThread;
using scaletrain::core::SpanScope;
using scaletrain::core::TimeLedger;
using scaletrain::core::TimeRow;
using scaletrain::core::TraceSpan;
using scaletrain::core::TraceSpans;

TEST_CASE("spans are recorded while a trace is, with their thread, and begin at its start") {
  const SpanScope before("begun before");
  { const SpanScope nobody("not recorded"); }
  TraceSpans::start();
  const std::int64_t started = TraceSpans::wall_ns();
  { const SpanScope span("of this thread"); }
  std::thread([] { const SpanScope span("of another thread"); }).join();
  TraceSpans::add({.name = "cut", .begin_ns = 1, .end_ns = TraceSpans::wall_ns()});
  TraceSpans::add({.name = "over before", .begin_ns = 1, .end_ns = 2});
  const std::vector<TraceSpan> spans = TraceSpans::stop();
  TraceSpans::add({.name = "too late", .begin_ns = 1, .end_ns = TraceSpans::wall_ns()});
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].name == "of this thread");
  CHECK(spans[0].thread == TraceSpans::thread_number());
  CHECK(spans[0].begin_ns >= started);
  CHECK(spans[0].end_ns >= spans[0].begin_ns);
  CHECK(spans[1].name == "of another thread");
  CHECK(spans[1].thread != spans[0].thread);
  CHECK(spans[2].name == "cut");
  CHECK(spans[2].begin_ns > 1);
  CHECK(TraceSpans::stop().empty());
}

TEST_CASE("rows of a time ledger are spans that follow each other without gaps") {
  TimeLedger ledger;
  const LedgerOfThread thread(&ledger);
  TraceSpans::start();
  for (const TimeRow row : {TimeRow::kDataWait, TimeRow::kForward, TimeRow::kBackward}) {
    ledger.leave(row);
  }
  ledger.end_span();
  const std::vector<TraceSpan> spans = TraceSpans::stop();
  REQUIRE(spans.size() == 4);
  CHECK(fmt::format("{} {} {} {}", spans[0].name, spans[1].name, spans[2].name, spans[3].name) ==
        "start_up data_wait forward backward");
  for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].begin_ns == spans[i - 1].end_ns);
}
