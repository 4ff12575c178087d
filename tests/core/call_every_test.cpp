#include "lib/core/call_every.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>

namespace scaletrain::core {
namespace {

TEST_CASE("a function is called at once, and again after each pause, until its end") {
  std::atomic<int> calls = 0;
  {
    const std::jthread caller = call_every(std::chrono::milliseconds(1), [&] {
      ++calls;
      calls.notify_all();
    });
    for (int seen = 0; seen < 3; seen = calls) calls.wait(seen);
  }
  const int at_the_end = calls;
  CHECK(at_the_end >= 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(calls == at_the_end);
}

TEST_CASE("the end does not wait for a pause") {
  std::atomic<int> calls = 0;
  {  // a wait would run into the test's time-out
    const std::jthread caller = call_every(std::chrono::hours(1), [&] {
      ++calls;
      calls.notify_all();
    });
    calls.wait(0);
  }
  CHECK(calls == 1);
}

}  // namespace
}  // namespace scaletrain::core
