#include "launcher/runs/run_devices.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;
using observe::DeviceSample;
using observe::GpuSample;

constexpr double kGb = 1e9;

GpuSample gpu_at(double utilization) {
  return {.index = 0,
          .name = "H200",
          .uuid = "GPU-1",
          .utilization = utilization,
          .memory_used_bytes = 60 * kGb,
          .memory_bytes = 80 * kGb,
          .sm_mhz = 1980,
          .temperature_c = 71,
          .power_w = 650};
}

DeviceSample host_sample() {
  return {.time = 1,
          .seconds = 1,
          .node = 1,
          .node_name = "a",
          .host = {.cpu = 34,
                   .memory_used_bytes = 12 * kGb,
                   .memory_available_bytes = 52 * kGb,
                   .disk_free_bytes = 120 * kGb,
                   .network_received_bytes_per_s = 1.2e6,
                   .network_sent_bytes_per_s = 8e5}};
}

std::vector<std::string> texts_of(const std::vector<DeviceSample>& samples) {
  RunJson devices = RunJson::array();
  for (const DeviceSample& sample : samples) devices.push_back(observe::to_json(sample));
  std::vector<std::string> texts;
  for (const DeviceRow& row : device_rows(devices)) texts.push_back(row.name + ": " + row.text);
  return texts;
}

TEST_CASE("each node and each GPU has a row, with what was measured") {
  DeviceSample sample = host_sample();
  sample.gpus = {gpu_at(97), {.index = 1, .uuid = "GPU-2", .lost = true}};
  sample.gpus[0].throttled = {"power cap"};
  CHECK(
      texts_of({sample}) ==
      std::vector<std::string>{"node 1: a  CPU 34 %  memory 12.0/64.0 GB  disk 120 GB free  "
                               "network 1.2 MB/s in, 0.8 MB/s out",
                               "gpu 0: 97 %  60.0/80.0 GB  650 W  71 C  1980 MHz  throttled: power "
                               "cap",
                               "gpu 1: lost: the driver no longer reaches it"});
  const DeviceSample other{.time = 1,
                           .seconds = 1,
                           .node = 2,
                           .node_name = "b",
                           .gpus = {{.index = 0, .utilization = 5}}};
  CHECK(texts_of({host_sample(), other}).back() == "gpu 0: b  5 %");
}

TEST_CASE("explain says what GPUs did, and the report has their curves over the steps") {
  const test::TemporaryFolder folder;
  const fs::path logs = folder.path / "logs" / "attempt_0";
  fs::create_directories(logs);
  observe::DeviceLog log(observe::device_file(logs, 0));
  for (int second = 0; second <= 4; ++second) {
    DeviceSample sample{.time = 100.0 + second,
                        .seconds = 1,
                        .node_name = "a",
                        .ranks = 1,
                        .gpus = {gpu_at(20.0 * second)}};
    if (second == 4) sample.gpus[0].throttled = {"power brake"};
    log.append(sample);
  }
  RunRecord run;
  run.folder = folder.path;
  for (const int step : {10, 20}) {
    run.trained[step] = {{"step", step}, {"time", 100.0 + step / 5.0}};  // at 102 s and 104 s
  }
  CHECK(devices_text(run) ==
        "  GPUs         40.0 % utilization, 650 W each, at most 71 C; throttled 20 % of the time: "
        "power brake\n");
  const RunJson json = devices_json(run);
  REQUIRE(json["curves"].size() == 4);
  CHECK(json["curves"][0]["title"] == "GPU utilization, mean (%)");
  CHECK(json["curves"][0]["step"] == RunJson({10.0, 15.0, 20.0}));
  CHECK(json["curves"][0]["value"] == RunJson({40.0, 60.0, 80.0}));
  CHECK(json["curves"][1]["value"][0] == 60.0);  // GB
  CHECK(json["energy"]["kwh"].is_null());
  run.folder = folder.path / "nowhere";
  CHECK(devices_json(run).is_null());
  CHECK(devices_text(run).empty());
}

TEST_CASE("rates are read from a recipe") {
  CHECK_FALSE(cost_rates(RunJson()).has_value());
  CHECK_FALSE(cost_rates({{"cost", nullptr}}).has_value());
  const auto rates = cost_rates({{"cost", {{"price", 2.5}, {"region", "FR"}}}});
  REQUIRE(rates.has_value());
  CHECK(rates->price == 2.5);
  CHECK_FALSE(rates->kwh_price.has_value());
  CHECK(rates->carbon_intensity() == 44);
}

}  // namespace
}  // namespace scaletrain::launcher
