#include "launcher/jobs/file_timer.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "lib/core/process/subprocess.h"
#include "tests/launcher/environment_support.h"

namespace scaletrain::launcher {
namespace {

std::string timer_line(pid_t pid, const std::string& scope, double end, int signal) {
  return fmt::format(
      R"({{"version": 1, "pid": {}, "scope_id": "{}", "expiration_time": {}, "signal": {}}})"
      "\n",
      pid, scope, end, signal);
}

// A timer and a worker that sleeps, for the length of a test.
struct TimedWorker {
  std::filesystem::path folder;
  FileTimer timer;
  core::Process process;

  TimedWorker()
      : folder(std::filesystem::temp_directory_path() / fmt::format("file-timer-{}", getpid())),
        timer((std::filesystem::create_directory(folder), folder / "pipe")),
        process(core::Process::spawn({.arguments = {"/bin/sleep", "1000"}, .variables = {}})) {}
  ~TimedWorker() { std::filesystem::remove_all(folder); }
  TimedWorker(const TimedWorker&) = delete;
  TimedWorker& operator=(const TimedWorker&) = delete;

  void send(const std::string& text) const {
    const core::Descriptor pipe(open(timer.pipe().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    REQUIRE(write(pipe.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  void look() { timer.look({{.rank = 3, .local_rank = 1, .pid = process.pid()}}); }
  // The signal that ended the worker; 0: it runs.
  int ended_by(int within_ms) const {
    pollfd watch{.fd = process.pidfd(), .events = POLLIN, .revents = 0};
    poll(&watch, 1, within_ms);
    const auto end = process.ended();
    return end ? end->signal : 0;
  }
};

TEST_CASE("a timer that ran out ends its process by its signal") {
  TimedWorker worker;
  worker.send(timer_line(worker.process.pid(), "load", 5, SIGUSR1));
  CHECK(worker.ended_by(0) == 0);  // nobody has looked
  worker.look();
  CHECK(worker.ended_by(10'000) == SIGUSR1);
}

TEST_CASE("of several expired timers the earliest one with a signal counts") {
  TimedWorker worker;
  const pid_t pid = worker.process.pid();
  worker.send(timer_line(pid, "a", 1, 0) + timer_line(pid, "b", 3, SIGKILL));
  worker.look();
  CHECK(worker.ended_by(10'000) == SIGKILL);
}

TEST_CASE("timers that run, were released, have no signal or are damaged end nobody") {
  TimedWorker worker;
  const pid_t pid = worker.process.pid();
  worker.send(timer_line(pid, "far", 4e9, SIGKILL) + timer_line(pid, "freed", 5, SIGKILL) +
              timer_line(pid, "freed", -1, 0) + timer_line(pid, "silent", 5, 0) +
              timer_line(pid, "odd", 5, 4000) + "{\"pid\": 1\n[]\n\n" +
              R"({"pid": "x", "scope_id": 3})" + "\n");
  worker.look();
  CHECK(worker.ended_by(50) == 0);
}

TEST_CASE("a request may come in pieces") {
  TimedWorker worker;
  const std::string line = timer_line(worker.process.pid(), "cut", 5, SIGTERM);
  worker.send(line.substr(0, 20));
  worker.look();
  worker.send(line.substr(20));
  worker.look();
  CHECK(worker.ended_by(10'000) == SIGTERM);
}

TEST_CASE("processes of other sessions are left alone") {
  TimedWorker worker;
  const core::Process other =
      core::Process::spawn({.arguments = {"/bin/sleep", "1000"}, .variables = {}});
  worker.send(timer_line(other.pid(), "mine", 5, SIGKILL));
  worker.look();
  pollfd watch{.fd = other.pidfd(), .events = POLLIN, .revents = 0};
  CHECK(poll(&watch, 1, 50) == 0);
}

TEST_CASE("the environment asks for a timer, and its pipe goes with it") {
  CHECK(file_timer_of_environment("x") == nullptr);
  const Variables off(Values{{"TORCHELASTIC_ENABLE_FILE_TIMER", "0"}});
  CHECK(file_timer_of_environment("x") == nullptr);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / fmt::format("file-timer-asked-{}", getpid());
  std::ofstream(file) << "an older one";
  {
    const Variables on(Values{{"TORCHELASTIC_ENABLE_FILE_TIMER", "1"},
                              {"TORCHELASTIC_TIMER_FILE", file.string()}});
    const auto timer = file_timer_of_environment("x");
    REQUIRE(timer != nullptr);
    CHECK(timer->pipe() == file);
    CHECK(std::filesystem::is_fifo(file));
  }
  CHECK_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace scaletrain::launcher
