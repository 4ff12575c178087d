#include "lib/format/checkpoint/run_requests.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

TEST_CASE("a request is taken once, under its own name") {
  const test::TemporaryFolder run;
  CHECK(!format::take_request(run.path, format::kSaveRequest));
  format::make_request(core::system_disk(), run.path, format::kSaveRequest);
  format::make_request(core::system_disk(), run.path, format::kSaveRequest);
  CHECK(!format::take_request(run.path, "other"));
  CHECK(format::take_request(run.path, format::kSaveRequest));
  CHECK(!format::take_request(run.path, format::kSaveRequest));
}

TEST_CASE("a request for a trace has its number of steps, and other texts are no request") {
  const test::TemporaryFolder run;
  CHECK(!format::take_trace_request(run.path));
  format::request_trace(core::system_disk(), run.path, 5);
  CHECK(format::take_trace_request(run.path) == 5);
  CHECK(!format::take_trace_request(run.path));
  for (const char* const text : {"", "0", "1001", "five", "5 steps"}) {
    CAPTURE(text);
    format::make_request(core::system_disk(), run.path, format::kTraceRequest, text);
    CHECK(!format::take_trace_request(run.path));
    CHECK(!format::take_request(run.path, format::kTraceRequest));  // removed
  }
}
