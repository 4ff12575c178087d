#include "launcher/workers/worker_output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;

// The consoles of a test: two pipes.
struct Screen {
  core::Pipe output = core::make_pipe(), error = core::make_pipe();

  static std::string read_all(const core::Pipe& pipe) {
    fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
    std::string text(1 << 20, '\0');
    const ssize_t bytes = read(pipe.read.get(), text.data(), text.size());
    return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
  }
};

WorkerPlan relayed_plan(int local_rank, const std::string& prefix) {
  WorkerPlan plan;
  plan.rank = plan.local_rank = local_rank;
  plan.standard_output = {.relayed = true, .prefix = prefix};
  plan.standard_error = {.relayed = true, .prefix = prefix};
  return plan;
}

void write_text(const core::Descriptor& fd, const std::string& text) {
  REQUIRE(write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

TEST_CASE("a worker has a pipe for each stream that is relayed") {
  WorkerOutput output;
  core::SpawnRequest request;
  CHECK(output.attach(WorkerPlan{}, request).empty());
  CHECK(request.descriptors.empty());
  const auto ends = output.attach(relayed_plan(0, ""), request);
  REQUIRE(ends.size() == 2);
  CHECK(request.descriptors ==
        std::vector<std::pair<int, int>>{{ends[0].get(), 1}, {ends[1].get(), 2}});
  std::vector<pollfd> watched(1);
  output.watch(watched);
  CHECK(watched.size() == 3);  // after what was there
}

TEST_CASE("the lines of all workers pass through, and those of standard error are kept") {
  const Screen screen;
  WorkerOutput output(screen.output.write.get(), screen.error.write.get());
  core::SpawnRequest request;
  const auto first = output.attach(relayed_plan(0, "a: "), request);
  const auto second = output.attach(relayed_plan(1, "b: "), request);
  write_text(first[0], "one\n");
  write_text(second[1], "two\nthree\n");
  std::vector<pollfd> watched;
  output.watch(watched);
  REQUIRE(poll(watched.data(), watched.size(), /*timeout=*/60'000) == 2);
  output.advance(watched);
  output.finish();
  CHECK(Screen::read_all(screen.output) == "a: one\n");
  CHECK(Screen::read_all(screen.error) == "b: two\nb: three\n");
  CHECK(output.last_lines(0).empty());
  CHECK(output.last_lines(1) == std::vector<std::string>{"two", "three"});
  CHECK(output.last_lines(7).empty());
}

TEST_CASE("a console that takes nothing is given up while workers stop, after its patience") {
  const Screen screen;
  WorkerOutput output(screen.output.write.get(), screen.error.write.get());
  core::SpawnRequest request;
  const auto ends = output.attach(relayed_plan(0, ""), request);
  // What poll would watch the worker's output for: POLLOUT while the console is behind.
  const auto awaited = [&] {
    std::vector<pollfd> watched;
    output.watch(watched);
    return watched[0].events;
  };
  const auto pass_on = [&] {
    std::vector<pollfd> watched;
    output.watch(watched);
    REQUIRE(poll(watched.data(), watched.size(), /*timeout=*/60'000) == 1);
    output.advance(watched);
  };
  const core::SteadyTime start{};
  CHECK_FALSE(output.next_look().has_value());
  output.begin_patience(start);
  CHECK(output.next_look() == start + milliseconds(1000));
  write_text(ends[0], "one\n");
  pass_on();  // reads
  pass_on();  // writes: the console has taken something
  write_text(ends[0], "two\n");
  pass_on();  // reads
  CHECK(awaited() == POLLOUT);

  output.look(start + milliseconds(1000));
  CHECK(output.next_look() == start + milliseconds(2000));
  CHECK(awaited() == POLLOUT);
  output.look(start + milliseconds(1999));
  CHECK(awaited() == POLLOUT);
  output.look(start + milliseconds(2000));
  CHECK(awaited() == POLLIN);  // given up: the worker can go on
}

}  // namespace
}  // namespace scaletrain::launcher
