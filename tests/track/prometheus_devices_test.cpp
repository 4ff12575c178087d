#include "lib/track/prometheus_devices.h"

#include <doctest/doctest.h>

#include <vector>

namespace scaletrain::track {

TEST_CASE("each measured value of a device is a gauge with its node, GPU or rank") {
  const std::vector<observe::DeviceSample> samples{
      {.node = 0,
       .host = {.cpu = 12.5},
       .gpus = {{.index = 0, .power_w = 650}, {.index = 1, .power_w = 100}},
       .workers = {{.rank = 3, .memory_bytes = 1e9}}},
      {.node = 1, .host = {.cpu = 50}}};
  CHECK(prometheus_devices("run=\"a\"", samples) ==
        "# TYPE scaletrain_gpu_power_w gauge\n"
        "scaletrain_gpu_power_w{run=\"a\",node=\"0\",gpu=\"0\"} 650\n"
        "scaletrain_gpu_power_w{run=\"a\",node=\"0\",gpu=\"1\"} 100\n"
        "# TYPE scaletrain_host_cpu gauge\n"
        "scaletrain_host_cpu{run=\"a\",node=\"0\"} 12.5\n"
        "scaletrain_host_cpu{run=\"a\",node=\"1\"} 50\n"
        "# TYPE scaletrain_rank_memory_bytes gauge\n"
        "scaletrain_rank_memory_bytes{run=\"a\",node=\"0\",rank=\"3\"} 1000000000\n");
  CHECK(prometheus_devices("run=\"a\"", {}).empty());
}

}  // namespace scaletrain::track
