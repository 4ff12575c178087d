#include "launcher/output_relay.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

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

TEST_CASE("of a long line only the start is kept") {
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
  OutputRelay relay(std::move(worker.read), console.write.get(), core::Descriptor());
  put(worker, "one\ntwo");
  CHECK(relay.watched_fd() != console.write.get());
  relay.advance();  // reads
  CHECK(relay.watched_fd() == console.write.get());
  relay.advance();  // writes
  CHECK(get(console) == "one\n");
  relay.finish();
  CHECK(get(console) == "two");
  CHECK(relay.last_lines().back() == "two");
  CHECK(relay.watched_fd() == -1);
}

TEST_CASE("a console that takes nothing is given up, and never blocks") {
  Pipe worker, console;
  while (write(console.write.get(), "x", 1) == 1) {
  }
  OutputRelay relay(std::move(worker.read), console.write.get(), core::Descriptor());
  put(worker, "one\n");
  relay.advance();
  relay.advance();
  CHECK(relay.watched_fd() == console.write.get());
  relay.finish();
  CHECK(relay.watched_fd() == -1);
}

}  // namespace
}  // namespace scaletrain::launcher
