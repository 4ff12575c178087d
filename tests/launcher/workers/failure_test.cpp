#include "launcher/workers/failure.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>

#include "launcher/place/placement.h"
#include "launcher/workers/error_file.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

WorkerEnd ended(int rank, core::ExitStatus status, double time, bool was_stopped = false) {
  return {.rank = rank,
          .local_rank = rank,
          .pid = 1000 + rank,
          .status = status,
          .time = time,
          .was_stopped = was_stopped};
}

std::vector<WorkerPlan> plans(int count) {
  std::vector<WorkerPlan> result(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) result[static_cast<std::size_t>(rank)].rank = rank;
  return result;
}

TEST_CASE("no failure where all succeeded") {
  GroupEnd end;
  end.workers = {ended(0, {}, 1), ended(1, {}, 2)};
  CHECK_FALSE(first_failure(end, plans(2)).has_value());
}

TEST_CASE("the first failure is the one that was seen first") {
  GroupEnd end;
  end.workers = {ended(1, {.code = 17}, 10.0), ended(0, {.code = 3}, 10.1)};
  const Failure failure = first_failure(end, plans(2)).value();
  CHECK(failure.rank == 1);
  CHECK(failure.others == std::vector<std::string>{"rank 0: exit code 3"});
}

TEST_CASE("a rank that the others outlived is no failure") {
  GroupEnd end;
  end.workers = {ended(1, {.signal = SIGKILL}, 10.0), ended(0, {}, 11.0)};
  end.workers[0].was_tolerated = true;
  CHECK_FALSE(first_failure(end, plans(2)).has_value());
  end.workers[1].status = {.code = 3};
  const Failure failure = first_failure(end, plans(2)).value();
  CHECK(failure.rank == 0);
  CHECK(failure.others.empty());
}

TEST_CASE("the report of a lost rank says who, how and where") {
  const Failure failure{.host = "a",
                        .rank = 2,
                        .local_rank = 2,
                        .pid = 17,
                        .status = {.code = 1},
                        .cause = "no room",
                        .step = 40,
                        .log = "stderr.log"};
  CHECK(render_lost(failure) ==
        "rank 2 is lost, the others go on: exit code 1 (host a, local rank 2, pid 17, step 40)\n"
        "  cause: no room\n"
        "  its log: stderr.log");
  CHECK(render_lost(failure, ", and replica 1 with it (ranks 2, 3)")
            .starts_with("rank 2 is lost, and replica 1 with it (ranks 2, 3), the others go on: "
                         "exit code 1 (host a"));
  CHECK(short_text(failure) == "rank 2 (exit code 1, step 40)");
  Failure hung = failure;
  hung.hang = "rank 2 on host a stands still";
  hung.cause = hung.log = "";
  CHECK(render_lost(hung) ==
        "rank 2 is lost, the others go on: hangs: rank 2 on host a stands still");
  CHECK(short_text(hung) == "rank 2 (hung, step 40)");
  const Failure node{.host = "b", .node = 3, .rank = -1, .cause = "nothing was heard"};
  CHECK(render_lost(node, ", and replica 4 with it (rank 7)") ==
        "node 3, host b is lost, and replica 4 with it (rank 7), the others go on: nothing was "
        "heard");
  CHECK(short_text(node) == "node 3 (lost)");
}

TEST_CASE("a rank that lost its peer only followed, whatever was seen first") {
  GroupEnd end;
  end.workers = {ended(0, {.code = 75}, 10.0), ended(1, {.signal = SIGKILL}, 10.1)};
  std::vector<WorkerPlan> ours = plans(2);
  for (WorkerPlan& plan : ours) plan.reports_lost_peer = true;
  CHECK(first_failure(end, ours)->rank == 1);
  CHECK(first_failure(end, plans(2))->rank == 0);  // a program may mean anything by 75
}

TEST_CASE(
    "a rank that was killed is named although its peers were seen first and all were stopped") {
  GroupEnd end;
  end.workers = {ended(3, {.code = 75}, 10.0), ended(0, {.signal = SIGKILL}, 10.1, true),
                 ended(1, {.signal = SIGTERM}, 10.1, true)};
  std::vector<WorkerPlan> ours = plans(4);
  for (WorkerPlan& plan : ours) plan.reports_lost_peer = true;
  const Failure failure = first_failure(end, ours).value();
  CHECK(failure.rank == 0);
  CHECK(failure.status.shell_code() == 137);
  CHECK(failure.others == std::vector<std::string>{"rank 3: exit code 75"});
  end.workers[1].was_killed = true;  // the launcher's own signal
  CHECK(first_failure(end, ours)->rank == 3);
}

TEST_CASE("a verdict in memory is the cause where the error file could not be written") {
  const core::Descriptor memory = core::make_memory_file(
      "test", R"({"message": {"message": "disk full", "extraInfo": {"time": 9.5, "step": 3}}})");
  const core::Descriptor empty = core::make_memory_file("test");
  GroupEnd end;
  end.workers = {ended(0, {.code = 1}, 10.0), ended(1, {.code = 74}, 10.1)};
  std::vector<WorkerPlan> with_verdicts = plans(2);
  with_verdicts[0].verdict_fd = empty.get();
  with_verdicts[1].verdict_fd = memory.get();
  with_verdicts[1].error_file = "/no/such/file";
  const Failure failure = first_failure(end, with_verdicts).value();
  CHECK(failure.rank == 1);
  CHECK(failure.cause == "disk full");
  CHECK(failure.step == 3);
}

TEST_CASE("a rank that was stopped is not the first, whatever it exits with") {
  GroupEnd end;
  end.workers = {ended(2, {.code = 75}, 10.0), ended(0, {.code = 1}, 10.0, true),
                 ended(1, {.code = 1}, 10.0, true)};
  std::swap(end.workers[0], end.workers[2]);
  const Failure failure = first_failure(end, plans(3)).value();
  CHECK(failure.rank == 2);
  CHECK(failure.others.size() == 2);
}

TEST_CASE("ranks that the launcher ended only followed, and are not listed") {
  GroupEnd end;
  end.workers = {ended(0, {.signal = SIGTERM}, 9.0, true), ended(1, {.signal = SIGKILL}, 9.5, true),
                 ended(2, {.code = 65}, 10.0, true)};
  end.workers[1].was_killed = true;
  const Failure failure = first_failure(end, plans(3)).value();
  CHECK(failure.rank == 2);
  CHECK(failure.others.empty());
}

TEST_CASE("the error file's time decides; one cut to seconds says no more than the second") {
  const test::TemporaryFolder folder;
  GroupEnd end;
  end.workers = {ended(0, {.code = 1}, 10.5), ended(1, {.code = 1}, 10.6)};
  std::vector<WorkerPlan> with_files = plans(2);
  with_files[1].error_file = folder.write(
      "1.json", R"({"message": {"message": "boom", "extraInfo": {"timestamp": "10"}}})");
  CHECK(first_failure(end, with_files)->rank == 0);  // 10.6 lies in second 10: no news
  with_files[1].error_file = folder.write(
      "1.json", R"({"message": {"message": "boom", "extraInfo": {"timestamp": "9"}}})");
  CHECK(first_failure(end, with_files)->rank == 1);
  with_files[1].error_file = folder.write(
      "1.json",
      R"({"message": {"message": "boom", "extraInfo": {"timestamp": "10", "time": 10.25}}})");
  CHECK(first_failure(end, with_files)->rank == 1);
}

TEST_CASE("a rank that reported its failure before the first one was seen did not follow it") {
  const test::TemporaryFolder folder;
  GroupEnd end;
  end.workers = {ended(0, {.code = 1}, 10.5), ended(1, {.signal = SIGTERM}, 10.6, true)};
  std::vector<WorkerPlan> with_files = plans(2);
  with_files[1].error_file = folder.write("1.json", R"({"message": "boom", "timestamp": 9})");
  const Failure failure = first_failure(end, with_files).value();
  CHECK(failure.rank == 1);
  CHECK(failure.status.shell_code() == 1);  // not the signal that the launcher sent
  CHECK_FALSE(failure.followed);
  with_files[1].error_file = folder.write("1.json", R"({"message": "late", "timestamp": 10.55})");
  CHECK(first_failure(end, with_files)->rank == 0);
  end.workers.erase(end.workers.begin());  // all that there is was ended by the launcher
  with_files[1].error_file = folder.write("1.json", R"({"message": "boom", "timestamp": 9})");
  CHECK(first_failure(end, with_files)->followed);
}

TEST_CASE("a rank that lost its peer is a follower, however soon it reported") {
  const test::TemporaryFolder folder;
  GroupEnd end;
  end.workers = {ended(0, {.code = 1}, 10.4), ended(1, {.signal = SIGKILL}, 10.5),
                 ended(2, {.code = 3}, 10.6)};
  std::vector<WorkerPlan> with_files = plans(3);
  const auto lost = R"({"message": "RuntimeError: Connection closed by peer", "timestamp": 10.1})";
  with_files[0].error_file = folder.write("0.json", lost);
  const Failure failure = first_failure(end, with_files).value();
  CHECK(failure.rank == 1);
  CHECK(failure.cause.empty());
  CHECK(failure.others == std::vector<std::string>{"rank 2: exit code 3", "rank 0: exit code 1"});
  end.workers.erase(end.workers.begin() + 1, end.workers.end());
  CHECK(first_failure(end, with_files)->followed);  // the cause lies on another node
}

TEST_CASE("whole seconds in an error file are made exact by the time of the file") {
  const test::TemporaryFolder folder;
  const auto second = static_cast<std::int64_t>(core::unix_time());
  const std::string path =
      folder.write("error.json", fmt::format(R"({{"message": "boom", "timestamp": {}}})", second));
  const std::array<timespec, 2> times{timespec{second, 0}, timespec{second, 250'000'000}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
  CHECK(read_error_file(path)->time == doctest::Approx(static_cast<double>(second) + 0.25));
  CHECK_FALSE(read_error_file(path)->whole_seconds);
}

TEST_CASE("an error file is read in both of torchrun's forms; anything else is no cause") {
  const test::TemporaryFolder folder;
  const auto read = [&](const std::string& text) {
    return read_error_file(folder.write("error.json", text));
  };
  const ErrorFile nested = read(R"({"message": {"message": "ValueError: boom", "extraInfo":
      {"py_callstack": "...", "timestamp": "12", "step": 7}, "errorCode": 1}})")
                               .value();
  CHECK(nested.message == "ValueError: boom");
  CHECK(nested.time == 12);
  CHECK(nested.whole_seconds);
  CHECK(nested.step == 7);
  const ErrorFile plain = read(R"({"message": "boom", "timestamp": 13})").value();
  CHECK(plain.message == "boom");
  CHECK(plain.time == 13);
  CHECK(plain.step == -1);
  for (const std::string text : {"", "{", "[]", "{}", R"({"message": 1})", R"({"message": {}})"}) {
    CHECK_FALSE(read(text).has_value());
  }
  CHECK_FALSE(read_error_file(folder.path / "absent").has_value());
}

TEST_CASE("the report is this text") {
  Failure failure{.host = "node3",
                  .rank = 5,
                  .local_rank = 1,
                  .pid = 4242,
                  .status = {.code = 65},
                  .time = 1.5,
                  .cause = "train-000001.tar: cut off\n  make it again",
                  .step = 120,
                  .log = "runs/a/logs/attempt_0/5/stderr.log",
                  .last_lines = {"first", "second"},
                  .others = {"rank 4: exit code 75", "rank 6: exit code 75"}};
  CHECK(render(failure) ==
        "rank 5 failed first: exit code 65 (host node3, local rank 1, pid 4242, step 120)\n"
        "  cause: train-000001.tar: cut off\n"
        "      make it again\n"
        "  the last lines of its standard error:\n"
        "    | first\n"
        "    | second\n"
        "  after it: rank 4: exit code 75, rank 6: exit code 75\n"
        "  its log: runs/a/logs/attempt_0/5/stderr.log");
  // A worker logs its cause: it is printed once.
  failure.last_lines = {"first", "[rank 5] train-000001.tar: cut off", "  make it again"};
  CHECK(render(failure).find("    | first\n  after it:") != std::string::npos);
  failure.last_lines.erase(failure.last_lines.begin());
  CHECK(render(failure).find("standard error") == std::string::npos);
}

TEST_CASE("a hang is the failure of the rank that is behind, with 75, whatever else was seen") {
  GroupEnd end;
  end.workers = {ended(0, {.signal = SIGKILL}, 9.0, true),
                 ended(1, {.signal = SIGKILL}, 9.0, true)};
  end.hang =
      Hang{.rank = 1,
           .local_rank = 1,
           .pid = 4242,
           .step = 7,
           .what = "rank 1 on host b never arrived at all-reduce 19 of step 7 (step consensus)",
           .lines = {"rank 1, pid 4242: silent for 2.0 s", "    #0 spin"}};
  const Failure failure = first_failure(end, plans(2)).value();
  CHECK(failure.rank == 1);
  CHECK(failure.status.shell_code() == 75);
  CHECK_FALSE(failure.followed);
  CHECK(render(failure) ==
        "rank 1 on host b never arrived at all-reduce 19 of step 7 (step consensus) (local rank 1, "
        "pid "
        "4242)\n"
        "  rank 1, pid 4242: silent for 2.0 s\n"
        "      #0 spin");
}

TEST_CASE("a SIGKILL from nowhere comes with a hint") {
  CHECK(render({.host = "h", .pid = 9, .status = {.signal = SIGKILL}, .last_lines = {}}) ==
        "rank 0 failed first: killed by SIGKILL (host h, local rank 0, pid 9)\n"
        "  nobody here sent that signal; the kernel does when memory runs out: see dmesg");
}

TEST_CASE("the log's last lines come from its file where they did not pass by") {
  const test::TemporaryFolder folder;
  GroupEnd end;
  end.workers = {ended(0, {.code = 1}, 1.0)};
  std::vector<WorkerPlan> with_log = plans(1);
  with_log[0].log = folder.write("stderr.log", "a\nb\n");
  CHECK(first_failure(end, with_log)->last_lines == std::vector<std::string>{"a", "b"});
  CHECK(first_failure(end, with_log)->host == host_name());
}

}  // namespace
}  // namespace scaletrain::launcher
