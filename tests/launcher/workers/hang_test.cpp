#include "launcher/workers/hang.h"

#include <doctest/doctest.h>

#include <string>

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)
using scaletrain::core::BeatCollective;

namespace scaletrain::launcher {
namespace {

RankView view(int rank, core::Phase phase, std::int64_t collectives, double silent_s) {
  RankView result{.rank = rank, .local_rank = rank, .pid = 100 + rank};
  result.silent = std::chrono::duration<double>(silent_s);
  result.beat.phase = phase;
  result.beat.step = 120;
  result.beat.collectives = collectives;
  return result;
}

std::optional<BeatCollective> all_reduce(std::int64_t number) {
  if (number > 812) return std::nullopt;
  return BeatCollective{.kind = "all-reduce", .name = "step consensus", .step = 120};
}

std::string told(const RankView& behind, bool alone = false) {
  return describe_hang(behind, "b", alone, all_reduce);
}

TEST_CASE("behind is the rank with the fewest collectives, however long the others wait") {
  CHECK(find_behind(
            {view(0, core::Phase::kCollective, 812, 9), view(1, core::Phase::kData, 811, 8)}) == 1);
  CHECK(find_behind(
            {view(0, core::Phase::kData, 811, 8), view(1, core::Phase::kCollective, 812, 9)}) == 0);
}

TEST_CASE("of ranks with equally many collectives the one that does not wait is named") {
  CHECK(find_behind({view(0, core::Phase::kCollective, 812, 9),
                     view(1, core::Phase::kCompute, 812, 8)}) == 1);
  CHECK(find_behind(
            {view(0, core::Phase::kJoining, 0, 9), view(1, core::Phase::kStarting, 0, 9)}) == 1);
  CHECK(find_behind(
            {view(0, core::Phase::kSaving, 812, 1), view(1, core::Phase::kSaving, 812, 2)}) == 1);
}

TEST_CASE("a process that was stopped is to blame, whatever it had reached") {
  auto views =
      std::vector{view(0, core::Phase::kData, 810, 9), view(1, core::Phase::kCollective, 812, 8)};
  views[1].stopped = true;
  CHECK(find_behind(views) == 1);
}

TEST_CASE("without running ranks no rank is reported as behind") {
  CHECK(find_behind({}) == std::nullopt);
}

// Of a job that has been silent for `job_silent_s`, under a time-out of 2 s.
bool hung(const RankView& behind, double job_silent_s) {
  return is_hung(behind, std::chrono::duration<double>(job_silent_s), 2s);
}

TEST_CASE("a rank that waits for no other is judged by its own silence") {
  CHECK_FALSE(hung(view(0, core::Phase::kData, 1, 1.9), 1.9));
  CHECK(hung(view(0, core::Phase::kData, 1, 2.1), 0));
}

TEST_CASE("a rank in a collective has more time, and is not judged while any rank makes progress") {
  for (const core::Phase phase :
       {core::Phase::kCollective, core::Phase::kJoining, core::Phase::kWaiting}) {
    CHECK_FALSE(hung(view(0, phase, 1, 4.9), 4.9));
    CHECK(hung(view(0, phase, 1, 5.1), 5.1));
    CHECK_FALSE(hung(view(0, phase, 1, 1000), 4.9));  // another node saves for long
  }
}

TEST_CASE("a rank that others have overtaken waits for nobody, whatever its phase") {
  RankView overtaken = view(1, core::Phase::kCollective, 811, 2.1);
  overtaken.others_ahead = true;
  CHECK(hung(overtaken, 0));
  CHECK(told(overtaken) ==
        "rank 1 on host b never arrived at all-reduce 812 of step 120 (step consensus)");
}

TEST_CASE("the verdict names what the rank did not reach") {
  CHECK(told(view(5, core::Phase::kData, 811, 9)) ==
        "rank 5 on host b never arrived at all-reduce 812 of step 120 (step consensus)");
  CHECK(told(view(5, core::Phase::kData, 900, 9)) ==
        "rank 5 on host b never arrived at collective 901 of step 120");
  CHECK(told(view(5, core::Phase::kStarting, 0, 9)) == "rank 5 on host b never joined");
  CHECK(told(view(5, core::Phase::kJoining, 0, 9)) ==
        "rank 5 on host b waits for the others to join, and no rank of this node is behind it");
  CHECK(told(view(0, core::Phase::kData, 0, 9), true) ==
        "rank 0 on host b stands still in step 120");
  CHECK(told(view(5, core::Phase::kCollective, 812, 9)) ==
        "rank 5 on host b waits in all-reduce 812 of step 120, and no rank of this node is behind "
        "it");
}

TEST_CASE("a program's heartbeat text is shown without control characters") {
  RankView program{.rank = 1, .text = "step 7\x1b"};
  program.silent = 2s;
  CHECK(told(program) == "rank 1 on host b does not beat");
  CHECK(describe_silence(program) == "silent for 2.0 s, its last words: \"step 7\\x1b\"");
  program.text = "";
  CHECK(describe_silence(program) ==
        "silent for 2.0 s, it never wrote to its beat file (SCALETRAIN_BEAT_FILE)");
  CHECK(describe_silence(view(1, core::Phase::kData, 811, 2.04)) ==
        "silent for 2.0 s in data, step 120, 811 collectives entered");
}

}  // namespace
}  // namespace scaletrain::launcher
