#include "lib/observe/devices/device_sample.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace scaletrain::observe {
namespace {

using doctest::Approx;
using Json = nlohmann::ordered_json;

// A sample in which every field has a value of its own.
DeviceSample full_sample() {
  DeviceSample sample{.time = 1000.25,
                      .seconds = 2,
                      .node = 1,
                      .node_name = "a",
                      .ranks = 4,
                      .no_gpus = "x",
                      .no_rapl = "y",
                      .gpus = {{.index = 3,
                                .name = "H200",
                                .uuid = "GPU-1",
                                .lost = true,
                                .throttled = {"power cap"},
                                .energy_from_power = true}},
                      .workers = {{.rank = 7}}};
  double value = 1.5;
  for (const auto& field : kHostFields) sample.host.*field.member = value++;
  for (const auto& field : kGpuFields) sample.gpus[0].*field.member = value++;
  for (const auto& field : kWorkerFields) sample.workers[0].*field.member = value++;
  return sample;
}

TEST_CASE("a sample is written as one object and read again") {
  const Json json = to_json(full_sample());
  const std::optional<DeviceSample> read = device_sample(json);
  REQUIRE(read.has_value());
  CHECK(to_json(*read) == json);
  CHECK(json["host"] == "a");
  CHECK(json["gpus"][0]["gpu"] == 3);
  CHECK(json["workers"][0]["rank"] == 7);
  CHECK(json["cpu"] == 1.5);
  CHECK(read->gpus[0].lost);
  CHECK(read->gpus[0].energy_from_power);
  CHECK(read->gpus[0].throttled == std::vector<std::string>{"power cap"});
}

TEST_CASE("what was not measured is left out, and other objects are no samples") {
  CHECK(to_json({.time = 1, .seconds = 1, .node_name = "a"}).dump() ==
        R"({"time":1.0,"seconds":1.0,"node":0,"host":"a","ranks":0})");
  CHECK_FALSE(device_sample(Json::parse(R"({"event": "train"})")).has_value());
  CHECK_FALSE(device_sample(Json::parse("[1]")).has_value());
}

TEST_CASE("joined samples have means weighted by time, and the later totals") {
  DeviceSample first = full_sample(), second = full_sample();
  first.seconds = 3;
  second.seconds = 1;
  second.time = 1003;
  first.gpus[0].utilization = 40;
  second.gpus[0].utilization = 80;
  first.gpus[0].energy_j = 100;
  second.gpus[0].energy_j = 150;
  second.host.cpu.reset();
  first.gpus[0].throttled = {"power brake"};
  first.workers.push_back({.rank = 8, .cpu = 5});
  const DeviceSample both = joined(first, second);
  CHECK(both.time == 1003);
  CHECK(both.seconds == 4);
  CHECK(*both.gpus.at(0).utilization == Approx(50));  // (3 x 40 + 1 x 80) / 4
  CHECK(both.gpus[0].energy_j == 150);
  CHECK(both.host.cpu == first.host.cpu);
  CHECK(both.gpus[0].throttled == std::vector<std::string>{"power cap", "power brake"});
  CHECK(both.workers.size() == 2);
}

}  // namespace
}  // namespace scaletrain::observe
