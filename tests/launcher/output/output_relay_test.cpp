#include "launcher/output/output_relay.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/clock.h"

namespace scaletrain::launcher {
namespace {

TEST_CASE("lines are passed on whole") {
  LineSplitter splitter;
  CHECK(splitter.take("one\ntw") == "one\n");
  CHECK(splitter.take("o\nthree") == "two\n");
  CHECK(splitter.rest() == "three");
  CHECK(splitter.rest().empty());
}

TEST_CASE("a carriage return ends a piece, as progress bars write them") {
  LineSplitter splitter;
  CHECK(splitter.take("\r10%") == "\r");
  CHECK(splitter.take("\r20%") == "10%\r");
}

TEST_CASE("a line without an end does not grow for ever") {
  LineSplitter splitter;
  const std::string part(40'000, 'x');
  CHECK(splitter.take(part).empty());
  CHECK(splitter.take(part).size() == 80'000);
}

TEST_CASE("the last 20 lines are kept, torn or not") {
  LastLines last;
  for (int i = 0; i < 30; ++i) last.add("line " + std::to_string(i) + "\n");
  CHECK(last.lines().size() == 20);
  CHECK(last.lines().front() == "line 10");
  last.add("to");
  last.add("rn\nend");
  CHECK(last.lines()[18] == "torn");
  CHECK(last.lines()[19] == "end");
}

TEST_CASE("lines do not depend on the sizes of the pieces in which output arrives") {
  std::string text = "first\r";
  for (int i = 0; i < 100; ++i) {
    text += std::to_string(i) + (i % 7 == 0 ? "\r\n" : i % 5 == 0 ? "\n\n" : "\n");
  }
  for (const std::string end : {"", "torn", "\r", "\n"}) {
    LastLines whole, pieces;
    for (const std::string& part : {std::string("before"), text, end}) whole.add(part);
    for (const char letter : "before" + text + end) pieces.add(std::string(1, letter));
    CHECK(whole.lines() == pieces.lines());
  }
}

TEST_CASE("a progress bar leaves its last state, not all of them") {
  LastLines last;
  for (int i = 0; i < 3000; ++i) last.add("\r" + std::to_string(i) + " of 3000 [##   ]");
  last.add(" terminate called\r\nnext\r");
  last.add("\n\nend\r");
  CHECK(last.lines() ==
        std::vector<std::string>{"2999 of 3000 [##   ] terminate called", "next", "", "end"});
}

TEST_CASE("only the beginning of a long line is kept") {
  LastLines last;
  last.add(std::string(10'000, 'x'));
  last.add("more\nnext");
  CHECK(last.lines()[0].size() == 4096);
  CHECK(last.lines()[1] == "next");
}

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    REQUIRE(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    read = core::Descriptor(ends[0]);
    write = core::Descriptor(ends[1]);
  }
  core::Descriptor read, write;
};

void put(const Pipe& pipe, const std::string& text) {
  REQUIRE(write(pipe.write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

std::string get(const Pipe& pipe) {
  std::string text(100'000, '\0');
  const ssize_t count = read(pipe.read.get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

TEST_CASE("what a worker writes reaches the console, and its rest when it is finished") {
  Pipe worker, console;
  core::Console shown(console.write.get());
  OutputRelay relay(std::move(worker.read), shown, LogFile());
  put(worker, "one\ntwo");
  CHECK(relay.watched_fd() != shown.fd());
  relay.advance();  // reads
  CHECK(relay.watched_fd() == shown.fd());
  relay.advance();  // writes
  CHECK(get(console) == "one\n");
  relay.finish();
  CHECK(get(console) == "two");
  CHECK(relay.last_lines().back() == "two");
  CHECK(relay.watched_fd() == -1);
}

TEST_CASE("a line that has no end for a while is shown all the same, with a prefix it is not") {
  for (const std::string prefix : {"", "[0]: "}) {
    Pipe worker, console;
    core::Console shown(console.write.get());
    OutputRelay relay(std::move(worker.read), shown, LogFile(), prefix);
    put(worker, "continue? ");
    relay.advance();
    relay.show_late(core::now());
    CHECK(relay.late_console() == nullptr);
    CHECK(relay.late_at().has_value() == prefix.empty());
    relay.show_late(core::now() + std::chrono::seconds(1));
    if (relay.late_console() != nullptr) relay.advance();
    CHECK(get(console) == (prefix.empty() ? "continue? " : ""));
    CHECK_FALSE(relay.late_at().has_value());
    put(worker, "yes\n");
    relay.advance();
    relay.finish();
    CHECK(get(console) == (prefix.empty() ? "yes\n" : "[0]: continue? yes\n"));
  }
}

TEST_CASE("a console that takes nothing is given up once for all, and never blocks") {
  Pipe console;
  while (write(console.write.get(), "x", 1) == 1) {
  }
  core::Console shown(console.write.get());
  std::vector<Pipe> workers(8);
  std::vector<OutputRelay> relays;
  for (Pipe& worker : workers) {
    for (int line = 0; line < 600; ++line) put(worker, std::string(99, 'x') + "\n");
    relays.emplace_back(std::move(worker.read), shown, LogFile());
    relays.back().advance();
    relays.back().advance();
    CHECK(relays.back().watched_fd() == shown.fd());
  }
  const core::SteadyTime start = core::now();
  for (OutputRelay& relay : relays) relay.finish();
  CHECK(core::seconds_since(start) < 2);  // one second, not one a relay and 16 KiB
  for (const OutputRelay& relay : relays) CHECK(relay.watched_fd() == -1);
}

TEST_CASE("what a process writes that was left behind is not waited for") {
  std::signal(SIGPIPE, SIG_IGN);  // the last of it has no reader
  Pipe worker, console;
  core::Console shown(console.write.get());
  OutputRelay relay(std::move(worker.read), shown, LogFile());
  std::jthread left_behind([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (write(worker.write.get(), "line\n", 5) < 0) std::this_thread::yield();
    }
  });
  std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) get(console);
  });
  relay.finish();
  CHECK(relay.watched_fd() == -1);
}

}  // namespace
}  // namespace scaletrain::launcher
