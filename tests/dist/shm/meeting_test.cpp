#include "lib/dist/shm/meeting.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <csignal>
#include <functional>

#include "lib/core/log.h"
#include "lib/dist/group.h"
#include "lib/dist/store.h"
#include "tests/dist/ranks.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;
using testing::run_ranks;

std::string text_of_meeting(c10d::Store& store, const core::WorkerEnv& env) {
  const ShmMeeting meeting = meet_in_memory(store, env.rank, env.world_size);
  return fmt::format("{} {} {}", meeting.arena != nullptr, meeting.one_host, meeting.why_not);
}

// Rank 0 hosts the store, which all need.
void leave_together(c10d::Store& store, const core::WorkerEnv& env) {
  store.add("left", 1);
  while (env.rank == 0 && store.add("left", 0) < env.world_size) sched_yield();
}

// From now on this process gets no memory that is shared.
void refuse_memory() {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  setrlimit(RLIMIT_FSIZE, &none);
}

TEST_CASE("the ranks of one host share memory") {
  const auto results = run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    const auto store = open_store(env, 30s);
    const ShmMeeting meeting = meet_in_memory(*store, env.rank, env.world_size);
    leave_together(*store, env);
    if (!meeting.arena || !meeting.one_host || !meeting.why_not.empty()) return meeting.why_not;
    return fmt::format("{} of {}", meeting.arena->rank(), meeting.arena->shape().ranks);
  });
  for (int rank = 0; rank < 3; ++rank) CHECK(results[rank].text == fmt::format("{} of 3", rank));
}

TEST_CASE("many ranks have smaller slots, whose sizes are whole cache lines") {
  CHECK(arena_shape(2).slot_bytes == 512 << 10);
  CHECK(arena_shape(8).slot_bytes == 512 << 10);
  CHECK(arena_shape(9).slot_bytes == 466'033 / 64 * 64);  // 4 MB / 9
  CHECK(arena_shape(200).slot_bytes == 64 << 10);
}

TEST_CASE("if one rank has no shared memory all ranks get the reason") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    const auto store = open_store(env, 30s);
    if (env.rank == 0) refuse_memory();
    std::string text = text_of_meeting(*store, env);
    leave_together(*store, env);
    return text;
  });
  for (const auto& result : results) {
    CHECK(result.text.starts_with("false true rank 0: "));
    CHECK(result.text.ends_with("File too large (EFBIG: the limit of file sizes is ulimit -f)"));
  }
}

TEST_CASE("a rank in another network is on another host") {
  if (geteuid() != 0) {
    MESSAGE("skipped: needs the right to make a network of its own");
    return;
  }
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) -> std::string {
    const auto store = open_store(env, 30s);
    if (env.rank == 1 && unshare(CLONE_NEWNET) != 0) return "no network of its own";
    std::string text = text_of_meeting(*store, env);
    leave_together(*store, env);
    return text;
  });
  for (const auto& result : results) CHECK(result.text == "false false other host");
}

TEST_CASE(
    "without memory the ranks use Gloo and say so once; where memory was asked for it fails") {
  for (const CpuExchange asked : {CpuExchange::kAuto, CpuExchange::kShm, CpuExchange::kGloo}) {
    const auto results = run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      std::string said;
      core::set_warning_listener([&](const std::string& line) { said += line; });
      if (env.rank == 0) refuse_memory();
      Group group(env, at::kCPU, 30s, core::Beat(), {}, asked);
      group.end("end");
      core::set_warning_listener({});
      return fmt::format("{}: {}", group.exchange(), said);
    });
    for (int rank = 0; rank < 2; ++rank) {
      const std::string& text = results[rank].text;
      CAPTURE(text);
      if (asked == CpuExchange::kShm) {
        CHECK(text.starts_with(R"(/dist/cpu: "shm" needs memory that all ranks share: rank 0: )"));
        CHECK(results[rank].status == 2);
      } else if (asked == CpuExchange::kAuto && rank == 0) {
        CHECK(text.starts_with("gloo: warning: ranks of one host communicate over the network"));
      } else {
        CHECK(text == "gloo: ");
      }
    }
  }
}

}  // namespace
}  // namespace scaletrain::dist
