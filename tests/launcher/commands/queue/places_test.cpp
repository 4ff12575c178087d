#include "launcher/commands/queue/places.h"

#include <doctest/doctest.h>

#include "launcher/platform/numa.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

// "devices:cpus" of each place.
std::string shown(const std::vector<RunPlace>& places) {
  std::string result;
  for (const RunPlace& place : places) result += place.devices + ":" + cpu_list(place.cpus) + " ";
  return result;
}

const std::set<int> kCpus{0, 1, 2, 3, 4, 5};

TEST_CASE("devices are divided among as many jobs as there is room for") {
  CHECK(shown(make_places({"0", "1", "2", "3", "4"}, 2, 0, kCpus)) == "0,1: 2,3: ");
  CHECK(shown(make_places({"GPU-a", "MIG-b"}, 1, 0, kCpus)) == "GPU-a: MIG-b: ");
  CHECK(shown(make_places({"0", "1", "2", "3"}, 1, 2, kCpus)) == "0: 1: ");
  CHECK_THROWS_WITH(make_places({"0"}, 2, 0, kCpus),
                    "--nproc: a job of 2 workers, and 1 device\n"
                    "  give fewer workers for each job, or more --devices");
}

TEST_CASE("without devices jobs run one after another, or share the CPUs") {
  CHECK(shown(make_places({}, 4, 0, kCpus)) == ": ");
  CHECK(shown(make_places({}, 1, 2, kCpus)) == ":0-2 :3-5 ");
  CHECK(shown(make_places({}, 1, 4, kCpus)) == ":0 :1-2 :3 :4-5 ");
  CHECK(shown(make_places({}, 1, 2, {7})) == ": : ");  // too few to divide
}

TEST_CASE("a device that is not here is refused") {
  CHECK(choose_devices("cpu").empty());
  CHECK_THROWS_AS(choose_devices("GPU-not-here"), core::UsageError);
  CHECK_THROWS_AS(choose_devices("999"), core::UsageError);
}

}  // namespace
}  // namespace scaletrain::launcher
