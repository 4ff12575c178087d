#include "lib/observe/progress.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "tests/observe/measures.h"
#include "tests/observe/observe_support.h"

namespace scaletrain::observe {

namespace {

constexpr ProgressGoal kGoal{.total_steps = 430, .steps_per_epoch = 43};
const TrainRecord kTrain{.step = 10,
                         .loss = 1.25,
                         .lr = 0.001,
                         .samples_per_s = 512,
                         .data_time = 0.01,
                         .compute_time = 0.09};
const EvalRecord kEvaluated{.split = "val",
                            .step = 43,
                            .epoch = 0,
                            .measures = image_measures(0.9, 1, 0.5),
                            .count = 200,
                            .counted = "samples"};
constexpr const char* kEvalLine =
    "val: top-1 90.00 %, top-5 100.00 %, loss 0.5000 (200 samples, step 43)";

// A terminal: what is written to `inside` can be read, as the screen gets it, from text().
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(openpty(&outside_, &inside, nullptr, nullptr, &size) == 0);
    REQUIRE(fcntl(outside_, F_SETFL, O_NONBLOCK) == 0);
  }
  ~Terminal() {
    close(outside_);
    close(inside);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  std::string text() const { return read_available(outside_); }

  int inside = -1;

 private:
  int outside_ = -1;
};

// The program's own main ignores SIGPIPE (core::install_stop_handlers).
class IgnoredSigpipe {
 public:
  IgnoredSigpipe() : old_(std::signal(SIGPIPE, SIG_IGN)) {}
  ~IgnoredSigpipe() { std::signal(SIGPIPE, old_); }
  IgnoredSigpipe(const IgnoredSigpipe&) = delete;
  IgnoredSigpipe& operator=(const IgnoredSigpipe&) = delete;

 private:
  void (*old_)(int);
};

void use_everything(int fd) {
  Progress progress(fd, kGoal);
  progress.tick(1, 2.0, 0.1);
  progress.train(kTrain);
  progress.eval(kEvaluated);
  progress.note("saved");
}

}  // namespace

TEST_CASE("without a terminal every record is a plain line, and steps in between are none") {
  const Pipe pipe;
  {
    Progress progress(pipe.write_end(), {});
    progress.tick(9, 1.5, 0.001);
    progress.train(kTrain);
    progress.eval(kEvaluated);
    progress.note("saved step 43");
  }
  CHECK(pipe.text() == "step 10  loss 1.2500  lr 0.001  512 samples/s  data 10%\n" +
                           std::string(kEvalLine) + "\nsaved step 43\n");
}

TEST_CASE("whole lines are kept for a file, and the bar of a terminal is not") {
  const Terminal terminal(80);
  std::vector<std::string> kept;
  {
    Progress progress(terminal.inside, {}, [&](const std::string& line) { kept.push_back(line); });
    progress.tick(9, 1.5, 0.001);
    progress.train(kTrain);
    progress.eval(kEvaluated);
    progress.note("saved \x1b[2J");
  }
  CHECK(kept == std::vector<std::string>{"step 10  loss 1.2500  lr 0.001  512 samples/s  data 10%",
                                         kEvalLine, "saved \\x1b[2J"});
}

TEST_CASE("control characters of a note cannot change the terminal") {
  const Pipe pipe;
  Progress(pipe.write_end(), {}).note("shard \x1b[2J.tar");
  CHECK(pipe.text() == "shard \\x1b[2J.tar\n");
}

TEST_CASE("on a terminal the bar is drawn over itself, and its line ends with the last state") {
  const Terminal terminal(60);
  {
    Progress progress(terminal.inside, {.total_steps = 4});
    progress.tick(1, 1.5, 0.001);
    CHECK(terminal.text() == "\r[======>                  ] step 1/4  loss 1.5000  lr 0.001\x1b[K");
    progress.tick(4, 0.5, 0.001);
  }
  const std::string end = terminal.text();
  CHECK(end.substr(0, 6) == "\r[====");
  CHECK(end.find("] step 4/4  loss 0.5000  lr 0.001  left 0s\x1b[K\r\n") != std::string::npos);
}

TEST_CASE("an evaluation and a note are lines above the bar") {
  const Terminal terminal(28);
  Progress progress(terminal.inside, {});
  progress.tick(43, 1.5, 0.001);
  CHECK(terminal.text() == "\rstep 43  loss 1.5000\x1b[K");
  progress.eval(kEvaluated);
  CHECK(terminal.text() ==
        "\r\x1b[K" + std::string(kEvalLine) + "\r\n\rstep 43  loss 1.5000\x1b[K");
}

TEST_CASE("a training record is part of the bar, not a line") {
  const Terminal terminal(80);
  Progress progress(terminal.inside, {});
  progress.train(kTrain);
  CHECK(terminal.text() == "\rstep 10  loss 1.2500  lr 0.001  512 samples/s  data 10%\x1b[K");
}

TEST_CASE("ten thousand steps are not ten thousand redraws") {
  const Terminal terminal(80);
  const core::SteadyTime start = core::now();
  std::string screen;
  {
    Progress progress(terminal.inside, {});
    for (int step = 1; step <= 10000; ++step) {
      progress.tick(step, 1.0, 0.1);
      if (step % 100 == 0) screen += terminal.text();
    }
  }
  screen += terminal.text();
  const auto redraws = std::count(screen.begin(), screen.end(), '\x1b');
  CHECK(redraws >= 2);  // the first and the last
  CHECK(static_cast<double>(redraws) <= 2 + core::seconds_since(start) * 10);
}

TEST_CASE("a terminal that does not tell its size counts as 80 columns") {
  const Terminal terminal(0);
  Progress progress(terminal.inside, kGoal);
  progress.tick(1, 1.5, 0.001);
  CHECK(terminal.text().size() == std::string("\r\x1b[K").size() + 79);
}

TEST_CASE("no broken output stops the training") {
  const IgnoredSigpipe ignored;
  SUBCASE("a pipe whose reader has gone") {
    Pipe pipe;
    pipe.close_read_end();
    use_everything(pipe.write_end());
  }
  SUBCASE("a full disk") {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    REQUIRE(full >= 0);
    use_everything(full);
    close(full);
  }
  SUBCASE("a closed descriptor") { use_everything(-1); }
  SUBCASE("a pipe that nobody reads") {
    const Pipe pipe;
    REQUIRE(fcntl(pipe.write_end(), F_SETFL, O_NONBLOCK) == 0);
    const std::string block(4096, 'x');
    while (write(pipe.write_end(), block.data(), block.size()) > 0) {
    }
    REQUIRE(fcntl(pipe.write_end(), F_SETFL, 0) == 0);
    use_everything(pipe.write_end());
    CHECK(pipe.text().find_first_not_of('x') == std::string::npos);
  }
  SUBCASE("a terminal that was stopped with Ctrl-S") {
    const Terminal terminal(80);
    REQUIRE(tcflow(terminal.inside, TCOOFF) == 0);
    use_everything(terminal.inside);
    CHECK(terminal.text().empty());
    REQUIRE(tcflow(terminal.inside, TCOON) == 0);
  }
}

}  // namespace scaletrain::observe
