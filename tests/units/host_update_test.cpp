#include "lib/units/host_update.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

using scaletrain::units::HostUpdate;

TEST_CASE("a reader waits for all updates that have begun, and for no others") {
  HostUpdate update;
  update.wait();
  update.begin();
  update.begin();
  std::atomic<int> ended = 0;
  std::jthread updater([&] {
    for (int i = 0; i < 2; ++i) {
      ++ended;
      update.end();
    }
  });
  update.wait();
  CHECK(ended == 2);
}

TEST_CASE("an update that has failed is said to each who waits") {
  HostUpdate update;
  update.begin();
  update.end(std::make_exception_ptr(std::runtime_error("the disk")));
  for (int i = 0; i < 2; ++i) CHECK_THROWS_WITH(update.wait(), "the disk");
}
