#include "lib/train/loop/trace_requests.h"

#include <doctest/doctest.h>

#include "lib/format/checkpoint/run_requests.h"
#include "tests/temporary_folder.h"

namespace scaletrain::train {
namespace {

TEST_CASE("the leading rank takes a request for a trace once, the others leave it") {
  const test::TemporaryFolder run;
  format::request_trace(core::system_disk(), run.path, 3);
  CHECK(TraceRequests(run.path, /*leads=*/false).take() == 0);
  CHECK(TraceRequests(run.path, /*leads=*/true).take() == 3);
  CHECK(TraceRequests(run.path, /*leads=*/true).take() == 0);
}

}  // namespace
}  // namespace scaletrain::train
