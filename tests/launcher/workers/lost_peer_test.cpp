#include "launcher/workers/lost_peer.h"

#include <doctest/doctest.h>

namespace scaletrain::launcher {

TEST_CASE("a lost connection is no cause, an error of the program's own is one") {
  CHECK(reports_lost_peer(
      "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by "
      "peer [10.0.0.2]:41235"));
  CHECK(
      reports_lost_peer("torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:268, "
                        "remote process exited or there was a network error, NCCL version 2.27"));
  CHECK(reports_lost_peer("DistNetworkError: failed to recv, got 0 bytes"));
  CHECK_FALSE(reports_lost_peer(""));
  CHECK_FALSE(reports_lost_peer("ValueError: root cause here"));
  CHECK_FALSE(reports_lost_peer("torch.OutOfMemoryError: CUDA out of memory."));
}

}  // namespace scaletrain::launcher
