#include "lib/core/process/subprocess.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

// How the process ended; fails the test where it does not end in 10 s.
ExitStatus wait_for(const Process& process) {
  pollfd watch{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
  REQUIRE(poll(&watch, 1, 10'000) == 1);
  const std::optional<ExitStatus> status = process.ended();
  REQUIRE(status.has_value());
  return *status;
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
  // Everything until the end of file.
  std::string drain() {
    write.reset();
    std::string text;
    std::array<char, 256> buffer{};
    for (ssize_t count = 0; (count = ::read(read.get(), buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
  Descriptor read, write;
};

SpawnRequest shell(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .variables = {}};
}

TEST_CASE("a process's exit code is reported, again and again, until it is destroyed") {
  const Process process = Process::spawn(shell("exit 17"));
  CHECK(wait_for(process).code == 17);
  CHECK(process.ended()->code == 17);
  CHECK(to_text(*process.ended()) == "exit code 17");
  CHECK(process.ended()->shell_code() == 17);
}

TEST_CASE("a signal that ends a process is reported by name") {
  const Process process = Process::spawn(shell("kill -SEGV $$"));
  const ExitStatus status = wait_for(process);
  CHECK(status.signal == SIGSEGV);
  CHECK(to_text(status) == "killed by SIGSEGV");
  CHECK(status.shell_code() == 139);
}

TEST_CASE("variables are set on top of the environment, descriptors arrive where they should") {
  setenv("SUBPROCESS_TEST_KEPT", "kept", 1);
  setenv("SUBPROCESS_TEST_CHANGED", "old", 1);
  Pipe out;
  SpawnRequest request = shell("echo $SUBPROCESS_TEST_KEPT $SUBPROCESS_TEST_CHANGED; echo no >&2");
  request.variables["SUBPROCESS_TEST_CHANGED"] = "new";
  const Descriptor null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  request.descriptors = {{out.write.get(), 1}, {null.get(), 2}};
  const Process process = Process::spawn(request);
  CHECK(out.drain() == "kept new\n");
  CHECK(wait_for(process).ok());
}

TEST_CASE("a descriptor can keep its number") {
  Pipe out;
  const int number = out.write.get();
  SpawnRequest request = shell("echo hello >/proc/self/fd/" + std::to_string(number));
  request.descriptors = {{number, number}};
  const Process process = Process::spawn(request);
  CHECK(out.drain() == "hello\n");
  CHECK(wait_for(process).ok());
}

TEST_CASE("a process ignores the configured signals") {
  SpawnRequest request = shell("kill -TERM $$; kill -USR2 $$; exit 3");
  request.ignored_signals = {SIGTERM, SIGUSR2};
  CHECK(wait_for(Process::spawn(request)).code == 3);
}

TEST_CASE("a process runs on the CPUs that it was given") {
  cpu_set_t ours;
  REQUIRE(sched_getaffinity(0, sizeof ours, &ours) == 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &ours)) last = cpu;
  }
  Pipe out;
  SpawnRequest request = shell("grep Cpus_allowed_list /proc/$$/status");
  request.descriptors = {{out.write.get(), 1}};
  request.cpus = {last};
  const Process process = Process::spawn(request);
  CHECK(out.drain() == "Cpus_allowed_list:\t" + std::to_string(last) + "\n");

  request.cpus = {100'000};
  CHECK_THROWS_AS(Process::spawn(request), UsageError);
}

TEST_CASE("a process is the leader of its own session") {
  Pipe out;
  SpawnRequest request = shell("cut -d' ' -f1,6 /proc/$$/stat");
  request.descriptors = {{out.write.get(), 1}};
  const Process process = Process::spawn(request);
  const std::string pid = std::to_string(process.pid());
  CHECK(out.drain() == pid + " " + pid + "\n");
}

TEST_CASE("destroying a process ends its whole group") {
  Pipe out;
  {
    SpawnRequest request = shell("sleep 1000 & echo started; wait");
    request.descriptors = {{out.write.get(), 1}};
    const Process process = Process::spawn(request);
    std::array<char, 8> started{};
    REQUIRE(::read(out.read.get(), started.data(), started.size()) == 8);
  }
  CHECK(out.drain().empty());  // ends only when the sleeping child is gone too
}

TEST_CASE("what has become this process's child is waited for with its group, and reaped") {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  Pipe out;
  SpawnRequest request = shell("sleep 1000 & echo $!; exit 3");
  request.descriptors = {{out.write.get(), 1}};
  Process process = Process::spawn(request);
  CHECK(wait_for(process).code == 3);
  std::array<char, 16> text{};
  REQUIRE(::read(out.read.get(), text.data(), text.size() - 1) > 1);
  const pid_t left = std::atoi(text.data());
  REQUIRE(kill(left, 0) == 0);
  CHECK(process.end_group(now() + std::chrono::seconds(10)));
  CHECK(kill(left, 0) == -1);  // not even a zombie
}

TEST_CASE("orphans that have ended are reaped, our own children are not") {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  Pipe out;
  SpawnRequest request = shell("(setsid sh -c 'echo $$' &); exec sleep 1000");
  request.descriptors = {{out.write.get(), 1}};
  const Process process = Process::spawn(request);
  std::array<char, 16> text{};
  REQUIRE(::read(out.read.get(), text.data(), text.size() - 1) > 1);
  const SteadyTime end = now() + std::chrono::seconds(10);
  while (kill(std::atoi(text.data()), 0) == 0 && now() < end) reap_orphans({process.pid()});
  CHECK(kill(std::atoi(text.data()), 0) == -1);
  const Process ours = Process::spawn(shell("exit 5"));
  wait_for(ours);
  reap_orphans({process.pid(), ours.pid()});
  CHECK(ours.ended()->code == 5);
}

TEST_CASE("a file that cannot be executed is an error that names it") {
  try {
    Process::spawn({.arguments = {"/etc/passwd"}, .variables = {}});
    FAIL("spawned");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()) ==
          "/etc/passwd: cannot be executed: Permission denied (EACCES)\n  name an executable file");
  }
}

TEST_CASE("find_program looks on PATH, and takes a path as it is") {
  CHECK(find_program("sh").has_value());
  CHECK(find_program("/bin/sh") == "/bin/sh");
  CHECK_FALSE(find_program("/etc/passwd").has_value());
  CHECK_FALSE(find_program("/etc").has_value());
  CHECK_FALSE(find_program("no-such-program-here").has_value());
}

TEST_CASE("signal_name knows every signal") {
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(99) == "signal 99");
}

}  // namespace
}  // namespace scaletrain::core
