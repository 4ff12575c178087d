#include "lib/core/process/beat.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/clock.h"

using scaletrain::core::Beat;
using scaletrain::core::BeatReader;
using scaletrain::core::make_beat_file;
using scaletrain::core::Phase;
using scaletrain::core::report_peer_lost;

TEST_CASE("a fresh file is a worker that is starting and has not beaten") {
  const auto file = make_beat_file();
  const auto state = BeatReader(file.get()).state();
  CHECK(state.count == 0);
  CHECK(state.phase == Phase::kStarting);
  CHECK(state.step == 0);
  CHECK(state.stack_signal == 0);
}

TEST_CASE("the launcher sees what the worker shows, and that it showed something") {
  const auto file = make_beat_file();
  const BeatReader reader(file.get());
  Beat beat(file.get());
  const auto first = reader.state().count;
  CHECK(first > 0);
  beat.set_total_steps(500);
  beat.begin_step(120);
  beat.enter(Phase::kData);
  auto state = reader.state();
  CHECK(state.count > first);
  CHECK(state.phase == Phase::kData);
  CHECK(state.step == 120);
  CHECK(state.total_steps == 500);
  beat.enter(Phase::kData);  // still here
  CHECK(reader.state().count > state.count);

  Beat copy = beat;
  copy.enter(Phase::kSaving);
  CHECK(reader.state().phase == Phase::kSaving);
}

TEST_CASE("collectives are numbered from 1 and known by name and step for a while") {
  const auto file = make_beat_file();
  const BeatReader reader(file.get());
  Beat beat(file.get());
  beat.name_next("initial model");
  beat.enter_collective("broadcast");
  beat.begin_step(3);
  beat.enter_collective("all-reduce");
  CHECK(reader.state().collectives == 2);
  CHECK(reader.state().phase == Phase::kCollective);
  const auto first = reader.collective(1).value();
  CHECK(first.kind == "broadcast");
  CHECK(first.name == "initial model");
  CHECK(first.step == 0);
  const auto second = reader.collective(2).value();
  CHECK(second.kind == "all-reduce");
  CHECK(second.name == "gradients");  // the Reducer's have no name
  CHECK(second.step == 3);
  CHECK_FALSE(reader.collective(3).has_value());
  CHECK_FALSE(reader.collective(0).has_value());
  beat.name_next("a name that is longer than what is kept of it");
  for (int i = 0; i < 100; ++i) beat.enter_collective("all-reduce");
  CHECK_FALSE(reader.collective(1).has_value());
  CHECK(reader.collective(102).value().name == "gradients");
}

TEST_CASE("a rank is seen in a collective until it is complete") {
  const auto file = make_beat_file();
  const BeatReader reader(file.get());
  Beat beat(file.get());
  beat.enter(Phase::kCompute);
  CHECK(std::string_view(beat.enter_collective("all-reduce")) == "gradients");
  beat.leave_collective();  // a wait that only queues more work for a device
  beat.enter(Phase::kData);
  CHECK(reader.state().phase == Phase::kCollective);
  const auto before = reader.state().count;
  beat.complete_collective();
  CHECK(reader.state().phase == Phase::kData);
  CHECK(reader.state().count > before);
}

TEST_CASE("the launcher reports to a worker that a peer is gone") {
  const auto file = make_beat_file();
  const Beat beat(file.get()), nobodys;
  CHECK_FALSE(beat.peer_is_lost());
  report_peer_lost(file.get());
  CHECK(beat.peer_is_lost());
  CHECK_FALSE(nobodys.peer_is_lost());
}

TEST_CASE("a long name is cut") {
  const auto file = make_beat_file();
  Beat beat(file.get());
  beat.name_next("a name that is longer than what is kept of it");
  beat.enter_collective("broadcast");
  CHECK(BeatReader(file.get()).collective(1).value().name == "a name that is longer than wha");
}

TEST_CASE("a heartbeat takes less than 0.1 ms") {
  const auto file = make_beat_file();
  Beat beat(file.get());
  constexpr int kBeats = 100'000;
  const auto start = scaletrain::core::now();
  for (int i = 0; i < kBeats; ++i) beat.enter(Phase::kCompute);
  const double each = scaletrain::core::seconds_since(start) / kBeats;
  MESSAGE("seconds a beat: " << each);
  CHECK(each < 1e-4);  // a system call on a busy machine would not pass either
}
