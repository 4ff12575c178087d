#include "lib/core/process/tcp.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/descriptor.h"

namespace core = scaletrain::core;

namespace {

using std::chrono::milliseconds;

struct Connection {
  core::Descriptor one, other;

  Connection() {
    std::array<int, 2> fds{};
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0);
    one = core::Descriptor(fds[0]);
    other = core::Descriptor(fds[1]);
  }
};

core::WaitForSocket patient(int fd) {
  return [fd](short events) {
    pollfd ready{.fd = fd, .events = events, .revents = 0};
    if (poll(&ready, 1, 10'000) != 1) throw std::runtime_error("nothing moves");
  };
}

void refuse(short /*events*/) { throw std::runtime_error("too long"); }

}  // namespace

TEST_CASE("a connection is to what listens, and says why there is none") {
  int port = 0;
  std::string why;
  {
    const std::vector<core::Descriptor> listeners =
        core::listen_on_free_port("the test", {"127.0.0.1"}, port);
    REQUIRE(listeners.size() == 1);
    CHECK_FALSE(core::connect_to("127.0.0.2", port, milliseconds(5000), why));
    CHECK((fcntl(listeners[0].get(), F_GETFL) & O_NONBLOCK) != 0);
    const core::Descriptor fd = core::connect_to("127.0.0.1", port, milliseconds(5000), why);
    REQUIRE(fd);
    CHECK((fcntl(fd.get(), F_GETFL) & O_NONBLOCK) != 0);
    // Of its addresses, IPv6 and IPv4, one answers.
    CHECK(core::connect_to("localhost", port, milliseconds(5000), why));
  }
  CHECK_FALSE(core::connect_to("127.0.0.1", port, milliseconds(5000), why));
  CHECK(why == "Connection refused (ECONNREFUSED)");
  CHECK_FALSE(core::connect_to("no-such-host.invalid", port, milliseconds(5000), why));
  CHECK(why.starts_with("its name does not resolve: "));
}

TEST_CASE("bytes arrive whole, whatever a socket takes at a time") {
  const Connection connection;
  std::vector<std::byte> sent(3 << 20), found(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 999);
  std::string said = "nothing";
  std::jthread sender(
      [&] { said = core::send_all(connection.one.get(), sent, patient(connection.one.get())); });
  CHECK(core::receive_all(connection.other.get(), found, patient(connection.other.get())).empty());
  sender.join();
  CHECK(said.empty());
  CHECK(std::ranges::equal(sent, found));
}

TEST_CASE("a wait that is too long is the caller's error, and a closed connection is a reason") {
  Connection connection;
  std::vector<std::byte> bytes(8 << 20);
  CHECK_THROWS_WITH(core::receive_all(connection.one.get(), bytes, refuse), "too long");
  CHECK_THROWS_WITH(core::send_all(connection.one.get(), bytes, refuse), "too long");
  CHECK(core::send_all(connection.other.get(), std::span(bytes).first(5), refuse).empty());
  connection.other.reset();
  CHECK(core::receive_all(connection.one.get(), std::span(bytes).first(5), refuse).empty());
  CHECK(core::receive_all(connection.one.get(), bytes, refuse) ==
        "Connection reset by peer (ECONNRESET)");
  CHECK(core::receive_all(connection.one.get(), bytes, refuse) == "it closed the connection");
  CHECK(core::send_all(connection.one.get(), bytes, refuse) == "Broken pipe (EPIPE)");
}
