#include "launcher/workers/restarts.h"

#include <doctest/doctest.h>

#include <vector>

namespace scaletrain::launcher {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const core::SteadyTime kStart = core::SteadyTime{} + hours(1);

TEST_CASE("--max-restarts limits the number of restarts") {
  Restarts restarts({.most = 2});
  CHECK(restarts.next(kStart, hours(1)) == milliseconds(0));
  CHECK(restarts.next(kStart, hours(1)) == milliseconds(0));
  CHECK_FALSE(restarts.next(kStart, hours(1)).has_value());
  CHECK(restarts.used() == 2);
}

TEST_CASE("the first restart is at once, then quick failures wait longer and longer") {
  Restarts restarts({.most = 100, .per_hour = 0, .delay = seconds(1)});
  std::vector<std::int64_t> waits;
  for (int i = 0; i < 9; ++i) waits.push_back(restarts.next(kStart, seconds(5))->count() / 1000);
  // 1, 2, 4, ..., a minute at most
  CHECK(waits == std::vector<std::int64_t>{0, 1, 2, 4, 8, 16, 32, 60, 60});
  CHECK(restarts.text(seconds(60)) == "starting again: restart 9 of 100, in 60 s");
}

TEST_CASE("an attempt that lasted long resets the restart delay") {
  Restarts restarts({.most = 100});
  for (int i = 0; i < 5; ++i) restarts.next(kStart, seconds(5));
  CHECK(restarts.next(kStart, minutes(2)) == milliseconds(0));
  CHECK(restarts.next(kStart, seconds(5)) == milliseconds(0));
  CHECK(restarts.next(kStart, seconds(5)) == milliseconds(1000));
}

TEST_CASE("a restart delay of 0 does not wait") {
  Restarts restarts({.most = 50, .per_hour = 0, .delay = milliseconds(0)});
  for (int i = 0; i < 50; ++i) CHECK(restarts.next(kStart, milliseconds(1)) == milliseconds(0));
  CHECK(restarts.text(milliseconds(0)) == "starting again: restart 50 of 50");
}

TEST_CASE("--restarts-per-hour limits the restarts in any hour") {
  Restarts restarts({.most = 100, .per_hour = 2});
  CHECK(restarts.next(kStart, minutes(2)).has_value());
  CHECK(restarts.next(kStart + minutes(30), minutes(2)).has_value());
  CHECK_FALSE(restarts.next(kStart + minutes(59), minutes(2)).has_value());
  CHECK(restarts.refusal() ==
        "\n  not started again: 2 restarts in the last hour, all of --restarts-per-hour");
  CHECK(restarts.next(kStart + minutes(61), minutes(2)).has_value());
  CHECK_FALSE(restarts.next(kStart + minutes(62), minutes(2)).has_value());
}

TEST_CASE("restarts that were spent before count") {
  Restarts restarts({.most = 3}, 2);
  CHECK(restarts.next(kStart, minutes(2)).has_value());
  CHECK_FALSE(restarts.next(kStart, minutes(2)).has_value());
  CHECK(restarts.refusal().empty());  // "restart 3 of 3" was said
}

}  // namespace
}  // namespace scaletrain::launcher
