#include "lib/replica/server.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/process/tcp.h"
#include "lib/replica/peer.h"
#include "lib/replica/wire.h"
#include "tests/replica/node_support.h"

namespace scaletrain::replica {
namespace {

std::string text_of(Peer& peer, const std::string& save, const std::string& name) {
  std::string text;
  peer.get(save, name, [&](std::span<const std::byte> piece) {
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return text;
}

void put(Peer& peer, const std::string& save, const std::string& name, const std::string& text) {
  peer.begin_file(save, 7, name);
  peer.send(test::bytes_of(text));
  peer.end_file();
}

}  // namespace

TEST_CASE("what is put is listed and given back, over one connection") {
  const test::Node node;
  Peer peer = node.peer();
  const std::string large(5'000'000, 'x');
  put(peer, "step-7.tmp.1", "model.safetensors", large);
  put(peer, "step-7.tmp.1", "empty", "");
  peer.finish("step-7.tmp.1", 7, "a manifest\nof two lines");
  const Holding holding = peer.list();
  CHECK(holding.most_bytes == test::kMuch);
  REQUIRE(holding.saves.size() == 1);
  CHECK(holding.saves[0].step == 7);
  CHECK(holding.saves[0].manifest == "a manifest\nof two lines");
  CHECK(holding.saves[0].files ==
        std::map<std::string, std::int64_t>{{"empty", 0}, {"model.safetensors", 5'000'000}});
  CHECK(text_of(peer, "step-7.tmp.1", "model.safetensors") == large);
  CHECK(text_of(peer, "step-7.tmp.1", "empty").empty());
  CHECK(test::message_of<core::StoppedError>([&] { text_of(peer, "step-7.tmp.1", "absent"); }) ==
        "the memory of node 127.0.0.1: has no absent of that checkpoint any more");
}

TEST_CASE("a file whose connection ends before it does is not there") {
  const test::Node node;
  {
    Peer peer = node.peer();
    put(peer, "a", "whole", "1");
    peer.begin_file("a", 7, "half");
    peer.send(test::bytes_of("2"));
  }
  Peer peer = node.peer();
  CHECK(peer.list().saves.front().files.size() == 1);
}

TEST_CASE("what does not fit is refused, and the connection goes on") {
  const test::Node node(4);
  Peer peer = node.peer();
  CHECK(test::message_of<core::StoppedError>([&] { put(peer, "a", "model", "12345"); }) ==
        "the memory of node 127.0.0.1: may take 4 bytes and no more");
  put(peer, "a", "model", "1234");
  CHECK(text_of(peer, "a", "model") == "1234");
}

TEST_CASE("a stranger with another secret or none reads and writes nothing") {
  const test::Node node;
  for (const char* const secret : {"", "other", "the secret of the job in this tesT"}) {
    CAPTURE(secret);
    Peer stranger({.hosts = {"127.0.0.1"}, .port = node.server.port(), .secret = secret},
                  node.never, test::kLittlePatience);
    CHECK(test::message_of<core::StoppedError>([&] {
            stranger.list();
          }).starts_with("the memory of node 127.0.0.1: has another secret"));
    CHECK_THROWS_AS(put(stranger, "a", "model", "1"), core::StoppedError);
    CHECK_THROWS_AS(stranger.finish("a", 9, "{}"), core::StoppedError);
  }
  CHECK(node.steps().empty());
}

TEST_CASE("a name that leaves the folder gets no answer") {
  const test::Node node;
  Peer peer = node.peer();
  CHECK_THROWS_AS(put(peer, "a", "../model", "1"), core::StoppedError);
  CHECK(node.steps().empty());
}

TEST_CASE("a request that was recorded counts neither again nor in another session") {
  const test::Node node;
  const auto open_wire = [&] {
    std::string why;
    return Wire(core::connect_to("127.0.0.1", node.server.port(), std::chrono::seconds(2), why),
                "the node", std::chrono::seconds(2), node.never);
  };
  const auto greet = [](Wire& wire, const std::string& own) {
    Session session(test::kSecret, wire.receive_line(), own);
    wire.send(own + " " + session.client_proof() + "\n");
    CHECK(wire.receive_line() == session.server_proof());
    return session;
  };
  Wire wire = open_wire();
  Session session = greet(wire, "1");
  const std::string recorded = session.seal_next("list") + " list\n";
  wire.send(recorded);
  const std::string answer = wire.receive_line();
  REQUIRE(answer.starts_with("ok "));
  wire.receive_text(std::stoul(answer.substr(3)));
  wire.send(recorded);
  CHECK_THROWS_AS(wire.receive_line(), core::StoppedError);
  Wire other = open_wire();
  greet(other, "1");  // the server's challenge differs
  other.send(recorded);
  CHECK_THROWS_AS(other.receive_line(), core::StoppedError);
}

TEST_CASE("idle and garbage connections take 16 threads at most, and are closed") {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator());
  };
  // The kernel lists a thread for a moment after it was joined.
  const auto threads_after_a_moment = [&](std::ptrdiff_t most) {
    for (int look = 0; look < 100 && threads() > most; ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return threads();
  };
  const test::Node node;
  const auto most = threads() + 16;
  std::vector<core::Descriptor> idle;
  std::string why;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(core::connect_to("127.0.0.1", node.server.port(), std::chrono::seconds(5), why));
    REQUIRE(idle.back());
    if (i % 2 == 1) ::send(idle.back().get(), "garbage\n", 8, MSG_NOSIGNAL);
    REQUIRE(threads_after_a_moment(most) <= most);
  }
  idle.clear();
  Peer peer = node.peer();
  put(peer, "a", "model", "1234");
  CHECK(text_of(peer, "a", "model") == "1234");
}

TEST_CASE("a request that is given up does not wait for a silent node") {
  // A port that listens and whose server never answers: nothing accepts behind the backlog.
  auto node = std::make_unique<test::Node>();
  std::atomic<bool> gives_up = false;
  Peer peer(node->address(), gives_up,
            {.connect = std::chrono::milliseconds(2000), .answer = std::chrono::minutes(10)});
  peer.begin_file("a", 7, "model");  // whose answer comes behind its end
  gives_up = true;
  const auto since = core::now();
  CHECK_THROWS_AS(peer.list(), core::StoppedError);
  CHECK(core::seconds_since(since) < 5);
}

TEST_CASE("a node that is gone is named") {
  auto node = std::make_unique<test::Node>();
  const std::atomic<bool> never = false;
  Peer peer(node->address(), never, test::kLittlePatience);
  node.reset();
  CHECK(test::message_of<core::StoppedError>([&] { peer.list(); }) ==
        "the memory of node 127.0.0.1: cannot be reached: Connection refused (ECONNREFUSED)\n"
        "  check that its launcher runs and can be reached");
}

}  // namespace scaletrain::replica
