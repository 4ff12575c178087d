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
