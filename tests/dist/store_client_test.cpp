// The launcher's client of the store against LibTorch's own server.
#include "launcher/agents/store_client.h"

#include <c10/util/intrusive_ptr.h>
#include <doctest/doctest.h>

#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "launcher/place/store_socket.h"

namespace scaletrain::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

c10::intrusive_ptr<c10d::TCPStore> serve() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

StoreClient client_of(const c10d::TCPStore& server, const std::string& host = "127.0.0.1") {
  return {{.host = host, .port = server.getPort()}, seconds(10), seconds(10)};
}

TEST_CASE("what one writes the other reads, both ways") {
  const auto server = serve();
  StoreClient client = client_of(*server);
  client.set("ours", "1");
  server->set("theirs", std::vector<std::uint8_t>{'a', 0, 'b'});
  CHECK(server->get_to_str("ours") == "1");
  CHECK(client.get("theirs") == std::string("a\0b", 3));
  CHECK(client.get_all({"ours", "theirs"}) ==
        std::vector<std::string>{"1", std::string("a\0b", 3)});
}

TEST_CASE("reading an absent key does not wait") {
  const auto server = serve();
  StoreClient client = client_of(*server);
  CHECK_FALSE(client.get("absent").has_value());
  client.set("empty", "");
  CHECK(client.get("empty") == "");
}

TEST_CASE("a counter counts for all") {
  const auto server = serve();
  StoreClient one = client_of(*server);
  StoreClient other = client_of(*server, "localhost");
  CHECK(one.add("n", 0) == 0);
  CHECK(one.add("n", 2) == 2);
  CHECK(other.add("n", 1) == 3);
  CHECK(server->add("n", 1) == 4);
}

TEST_CASE("a value of a megabyte passes") {
  const auto server = serve();
  StoreClient client = client_of(*server);
  const std::string value(1 << 20, 'x');
  client.set("large", value);
  CHECK(client.get("large") == value);
}

TEST_CASE("a server that is gone is a lost store, named") {
  auto server = serve();
  const int port = server->getPort();
  StoreClient client = client_of(*server);
  client.set("a", "1");
  CHECK(client.get("a") == "1");
  server.reset();
  CHECK_THROWS_AS(
      [&] {
        for (int i = 0; i < 100; ++i) client.get("a");
      }(),
      StoreLost);
  try {
    StoreClient({.host = "127.0.0.1", .port = port}, seconds(1), seconds(1));
    FAIL("nobody listens there");
  } catch (const StoreLost& error) {
    CHECK(std::string(error.what())
              .starts_with("the store at 127.0.0.1:" + std::to_string(port) +
                           ": Connection refused (ECONNREFUSED)\n"));
  }
}

TEST_CASE("a server that does not answer is given up") {
  Placement placement;
  const StoreSocket silent = listen_for_store(placement);
  try {
    StoreClient({.host = "127.0.0.1", .port = silent.port}, seconds(1), milliseconds(300));
    FAIL("nobody answers there");
  } catch (const StoreLost& error) {
    CHECK(error.found() == "no answer for 0.3 s");
  }
}

TEST_CASE("a name that does not resolve is named") {
  try {
    StoreClient({.host = "no-such-host.invalid", .port = 1}, seconds(1), seconds(1));
    FAIL("there is no such host");
  } catch (const StoreLost& error) {
    CHECK(error.place() == "the store at no-such-host.invalid:1");
    CHECK(error.found().starts_with("its name does not resolve: "));
  }
}

}  // namespace
}  // namespace scaletrain::launcher
