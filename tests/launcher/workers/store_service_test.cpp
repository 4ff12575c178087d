#include "launcher/workers/store_service.h"

#include <doctest/doctest.h>
#include <poll.h>

namespace scaletrain::launcher {
namespace {

core::SpawnRequest server_script(const std::string& script) {
  return {.arguments = {"/bin/sh", "-c", script}, .variables = {}};
}

bool is_readable(int fd) {
  pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&watched, 1, /*timeout=*/60'000) == 1;
}

TEST_CASE("without a socket no store is served") {
  const StoreService service(-1, server_script("exit 0"));
  CHECK(service.watched_fd() == -1);
  CHECK_FALSE(service.pid().has_value());
}

TEST_CASE("the server starts when a worker knocks, and its end is a reason to stop") {
  const core::Pipe knock = core::make_pipe();
  StoreService service(knock.read.get(), server_script("exit 3"));
  CHECK(service.watched_fd() == knock.read.get());
  CHECK(service.advance().empty());
  CHECK(service.pid().value() > 0);
  REQUIRE(service.watched_fd() != knock.read.get());
  REQUIRE(is_readable(service.watched_fd()));
  CHECK(service.advance() == "the process that serves the store ended: exit code 3");
  CHECK(service.watched_fd() == -1);
  CHECK(service.pid().value() > 0);  // its owner still waits for it
}

TEST_CASE("a server that cannot be started is a reason to stop, once") {
  const core::Pipe knock = core::make_pipe();
  StoreService service(knock.read.get(), {.arguments = {"/no/such/server"}, .variables = {}});
  CHECK(service.advance().starts_with(
      "a worker asked for the store, and it cannot be started: /no/such/server"));
  CHECK(service.watched_fd() == -1);
  CHECK_FALSE(service.pid().has_value());
}

}  // namespace
}  // namespace scaletrain::launcher
