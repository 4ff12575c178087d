#include "lib/dist/device_time_marks.h"

#include <c10/core/Device.h>
#include <doctest/doctest.h>

namespace {

using namespace scaletrain;

TEST_CASE("a CPU has no queue, so that a ledger takes the host's clock") {
  CHECK(dist::make_time_marks(c10::Device(c10::kCPU)) == nullptr);
}

}  // namespace
