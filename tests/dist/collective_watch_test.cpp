#include "lib/dist/collective_watch.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/syscall.h>

#include <atomic>
#include <stdexcept>

#include "lib/core/error.h"
#include "lib/core/process/trace_spans.h"
#include "lib/dist/group.h"
#include "tests/dist/ranks.h"

namespace scaletrain::dist {
namespace {

using namespace std::chrono_literals;

// A work that is under way until the test says otherwise.
class FakeWork : public c10d::Work {
 public:
  void complete() { finish(); }
  void fail(const std::string& text) { finish(std::make_exception_ptr(std::runtime_error(text))); }
};

// A watch over a beat that the test reads as the launcher does.
struct Watching {
  explicit Watching(std::chrono::milliseconds limit = 0ms, bool on_host = false)
      : watch({.rank = 3,
               .limit = limit,
               .on_host = on_host,
               .leave = [this](const std::exception_ptr& failure) { left = text_of(failure); }},
              core::Beat(file.get())) {
    watch.add_abort(this, [this] { ++aborts; });
  }

  c10::intrusive_ptr<FakeWork> start(const char* kind = "all-reduce") {
    auto work = c10::make_intrusive<FakeWork>();
    watch.started(watch.enter(kind), work);
    return work;
  }
  core::Phase phase() const { return core::BeatReader(file.get()).state().phase; }
  std::string checked() {
    try {
      watch.check();
    } catch (...) {
      return text_of(std::current_exception());
    }
    return "";
  }
  static std::string text_of(const std::exception_ptr& failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const core::Error& error) {
      return fmt::format("{} {}: {}", static_cast<int>(error.exit_code()), error.place(),
                         error.found());
    }
  }

  core::Descriptor file = core::make_beat_file();
  std::atomic<int> aborts = 0;
  std::string left;
  CollectiveWatch watch;
};

const core::SteadyTime kStart = core::now();

TEST_CASE("collectives are spans of a recorded trace, with name, group and bytes") {
  for (const CpuExchange exchange : {CpuExchange::kGloo, CpuExchange::kShm}) {
    const auto results = testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) {
      Group group(env, at::kCPU, std::chrono::seconds(30), core::Beat(), {}, exchange);
      group.all_reduce_sum(at::ones({64}), "before").wait();
      core::TraceSpans::start();
      const std::int64_t begin = core::TraceSpans::wall_ns();
      group.all_reduce_sum(at::ones({256}), "gradients").wait();
      const std::int64_t end = core::TraceSpans::wall_ns();
      std::string text;
      for (const core::TraceSpan& span : core::TraceSpans::stop()) {
        const bool is_within =
            begin <= span.begin_ns && span.begin_ns <= span.end_ns && span.end_ns <= end;
        text += fmt::format("{} of {}, {} bytes{}", span.name, span.group, span.bytes,
                            is_within ? "" : ", at another time");
      }
      return text;
    });
    for (const auto& result : results) CHECK(result.text == "gradients of world, 1024 bytes");
  }
}

}  // namespace

TEST_CASE("a rank is in a collective until its work completes, whatever the training thread does") {
  Watching w;
  core::Beat trains(w.file.get());
  trains.enter(core::Phase::kCompute);
  const auto first = w.start(), second = w.start();
  trains.leave_collective();  // wait() on a device returns at once
  w.watch.look(kStart);
  CHECK(w.phase() == core::Phase::kCollective);
  trains.enter(core::Phase::kSaving);
  first->complete();
  w.watch.look(kStart);
  CHECK(w.phase() == core::Phase::kCollective);
  second->complete();
  w.watch.look(kStart);
  CHECK(w.phase() == core::Phase::kSaving);
  CHECK(w.checked().empty());
  CHECK(w.aborts == 0);
}

TEST_CASE("a work whose caller has waited for it is let go at once, not with the next look") {
  Watching w;
  const auto first = w.start(), second = w.start();
  w.watch.settle(*first);  // on a device it may still be under way
  CHECK(first.use_count() == 2);
  first->complete();
  w.watch.settle(*first);
  CHECK(first.use_count() == 1);
  CHECK(second.use_count() == 2);
  CHECK(w.phase() == core::Phase::kCollective);
  Watching on_host(0s, /*on_host=*/true);  // as a reduce-scatter of Gloo, which never completes
  const auto silent = on_host.start();
  on_host.watch.settle(*silent);
  CHECK(silent.use_count() == 1);
  CHECK(on_host.phase() != core::Phase::kCollective);
}

TEST_CASE("a listener for collectives gets the kind and name of each when it is entered") {
  std::string heard;
  CollectiveWatch watch(
      {.leave = [](const std::exception_ptr&) {},
       .on_enter = [&](const char* kind,
                       const char* name) { heard += fmt::format("{} {}; ", kind, name); }},
      core::Beat());
  watch.begin("connect", "shards");
  watch.end();
  watch.enter("all-reduce");  // the Reducer's
  CHECK(heard == "connect shards; all-reduce gradients; ");
}

TEST_CASE("a work that failed aborts the communicator, once, and its cause is reported") {
  Watching w;
  const auto work = w.start(), behind = w.start();
  work->fail("remote process exited or there was a network error");
  w.watch.look(kStart);
  behind->fail("aborted");
  w.watch.look(kStart + 1s);
  CHECK(w.checked() ==
        "75 rank 3: collective \"gradients\" was not completed: a peer was lost or the timeout "
        "expired "
        "(remote process exited or there was a network error)");
  w.watch.look(kStart + 60s);
  CHECK(w.left.empty());  // the training thread has been told
}

TEST_CASE("a failure aborts the communicators of all groups that are still there") {
  Watching w;
  std::atomic<int> second = 0, gone = 0;
  w.watch.add_abort(&second, [&] { ++second; });
  w.watch.add_abort(&gone, [&] { ++gone; });
  w.watch.remove_abort(&gone);
  w.start()->fail("reset");
  w.watch.look(kStart);
  while (second == 0) std::this_thread::yield();  // the thread of the aborts, in their order
  CHECK(w.aborts == 1);
  CHECK(gone == 0);
}

TEST_CASE("memory that runs out in a collective is no lost peer") {
  Watching w;
  w.start()->fail("unhandled cuda error\nLast error:\nCuda failure 2 'out of memory'");
  w.watch.look(kStart);
  CHECK(w.checked().starts_with("71 rank 3: collective \"gradients\" was not completed: memory"));
}

TEST_CASE("connecting and collectives have a limit where their backend has none") {
  for (const bool connecting : {false, true}) {
    CAPTURE(connecting);
    Watching limited(10s), unlimited;
    for (Watching* const w : {&limited, &unlimited}) {
      if (connecting) {
        w->watch.begin("connect", "gradients");
      } else {
        w->start();
      }
      w->watch.look(core::now() + 9s);
      CHECK(w->checked().empty());
      w->watch.look(core::now() + 11s);
    }
    CHECK(unlimited.checked().empty());
    CHECK(limited.checked() ==
          "75 rank 3: collective \"gradients\" was not completed: a peer was lost or the timeout "
          "expired "
          "(after 10.0 s)");
  }
}

TEST_CASE("what ended in time is not judged") {
  Watching w(10s);
  w.watch.begin("connect", "connect");
  CHECK(w.phase() == core::Phase::kCollective);
  w.watch.end();
  CHECK(w.phase() == core::Phase::kStarting);
  w.watch.look(core::now() + 60s);
  CHECK(w.checked().empty());
}

TEST_CASE("after the launcher's word a collective has a moment to complete") {
  Watching w;
  const auto work = w.start();
  core::report_peer_lost(w.file.get());
  const core::SteadyTime heard = core::now();
  w.watch.look(heard);
  work->complete();  // the peer had done its part
  w.watch.look(heard + 900ms);
  CHECK(w.checked().empty());
  w.start();
  w.watch.look(heard + 1s);  // it began later: its moment is its own
  CHECK(w.checked().empty());
  w.watch.look(heard + 3s);
  CHECK(w.checked() ==
        "75 rank 3: collective \"gradients\" was not completed: a peer was lost or the timeout "
        "expired "
        "(the launcher reports that a rank is gone)");
}

TEST_CASE("a thread that does not come back from its wait is not waited for") {
  Watching w;
  w.start()->fail("reset");
  w.watch.look(kStart);
  w.watch.look(kStart + CollectiveWatch::kReturnPatience - 1ms);
  CHECK(w.left.empty());
  w.watch.look(kStart + CollectiveWatch::kReturnPatience);
  CHECK(w.left ==
        "75 rank 3: collective \"gradients\" was not completed: a peer was lost or the timeout "
        "expired "
        "(reset)");
}

// A rank that stands still keeps its connections: Gloo waits, and hears no signal meanwhile.
TEST_CASE("a rank that waits for a frozen one leaves when the launcher reports that one is gone") {
  const core::Descriptor file = core::make_beat_file();
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto results =
      testing::run_ranks({.world_size = 2}, [&](const core::WorkerEnv& env) -> std::string {
        Group group(env, at::kCPU, 60s, env.rank == 0 ? core::Beat(file.get()) : core::Beat());
        group.barrier("ready");
        pid_t other = getpid();
        if (env.rank == 1) {  // does nothing until the other has left
          if (read(ends[0], &other, sizeof other) != sizeof other) return "no pipe";
          const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, other, 0));
          pollfd watched{.fd = pidfd, .events = POLLIN, .revents = 0};
          return poll(&watched, 1, 50'000) == 1 ? "frozen" : "it never left";
        }
        if (write(ends[1], &other, sizeof other) != sizeof other) return "no pipe";
        core::report_peer_lost(file.get());
        group.barrier("never");
        return "completed";
      });
  close(ends[0]);
  close(ends[1]);
  CHECK(results[0].status == 75);
  CHECK(results[0].text.find("(the launcher reports that a rank is gone)") != std::string::npos);
  CHECK(results[1].text == "frozen");
  CHECK(results[0].seconds < 30);
}

}  // namespace scaletrain::dist
