#include "lib/observe/devices/device_files.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

namespace scaletrain::observe {
namespace {

namespace fs = std::filesystem;
using doctest::Approx;

DeviceSample sample_at(int second) {
  return {.time = static_cast<double>(second),
          .seconds = second > 0 ? 1.0 : 0.0,
          .node_name = "a",
          .host = {.cpu = static_cast<double>(second), .cpu_energy_j = 10.0 * second}};
}

TEST_CASE("a file of samples stays short: neighbours are joined, and lines cover twice the time") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path / "devices_0.jsonl";
  {
    DeviceLog log(file, 4);
    for (int second = 0; second < 100; ++second) {
      log.append(sample_at(second));
      REQUIRE(read_device_samples(file).size() < 4);
    }
    log.flush();
  }
  const std::vector<DeviceSample> samples = read_device_samples(file);
  REQUIRE(samples.size() >= 2);
  CHECK(samples.front().time - samples.front().seconds == Approx(0));
  CHECK(samples.back().time == 99);
  CHECK(samples.back().seconds == Approx(36));  // a line of 32 samples, joined with the last four
  CHECK(samples.back().host.cpu_energy_j == 990);
  double seconds = 0, cpu = 0;
  for (const DeviceSample& sample : samples) {
    seconds += sample.seconds;
    cpu += sample.seconds * sample.host.cpu.value_or(0);
  }
  CHECK(seconds == Approx(99));
  CHECK(cpu / seconds == Approx(50));  // the mean of 1 to 99
}

TEST_CASE("the files of a run are found by attempt and node, and the newest samples are the last") {
  const test::TemporaryFolder folder;
  for (const auto& [attempt, node] : {std::pair(0, 0), {1, 10}, {1, 2}}) {
    const fs::path logs = folder.path / "logs" / ("attempt_" + std::to_string(attempt));
    DeviceLog log(device_file(logs, node));
    for (int second = 0; second < 3; ++second) {
      DeviceSample sample = sample_at(second);
      sample.node = node;
      log.append(sample);
    }
  }
  folder.write("logs/attempt_1/devices_x.jsonl", "");
  folder.write("logs/attempt_1/0/stderr.log", "");
  const std::vector<DeviceFile> files = device_files(folder.path);
  REQUIRE(files.size() == 3);
  CHECK(files[1].node == 2);
  CHECK(files[2].attempt == 1);
  const std::vector<DeviceSample> newest = newest_device_samples(folder.path);
  REQUIRE(newest.size() == 2);
  CHECK(newest[0].node == 2);
  CHECK(newest[1].node == 10);
  CHECK(newest[0].time == 2);
}

TEST_CASE("the first and the last sample are read past lines that are damaged") {
  const test::TemporaryFolder folder;
  const std::string line = R"({"time": 5, "seconds": 1, "node": 0, "host": "a", "ranks": 1})";
  const std::string file = folder.write(
      "devices_0.jsonl", "{\"torn\n" + line + "\n" + "{\"time\": 9, \"seconds\": 1}\n{\"ti");
  const std::vector<DeviceSample> ends = first_and_last_sample(file);
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].time == 5);
  CHECK(ends[1].time == 9);
  CHECK(first_and_last_sample(folder.file("nowhere")).empty());
  CHECK(first_and_last_sample(folder.write("one", line + "\n")).size() == 2);
}

}  // namespace
}  // namespace scaletrain::observe
