#include "lib/track/scrape_server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

core::Descriptor connected_to(int port) {
  core::Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  return client;
}

// The answer of the server to `request`, until it closes the connection.
std::string answer_to(const ScrapeServer& server, std::string_view request) {
  const core::Descriptor client = connected_to(server.port());
  REQUIRE(send(client.get(), request.data(), request.size(), 0) ==
          static_cast<ssize_t>(request.size()));
  server.serve("scaletrain_step 7\n");
  std::string answer;
  std::array<char, 1024> block{};
  for (ssize_t count = 0; (count = recv(client.get(), block.data(), block.size(), 0)) > 0;) {
    answer.append(block.data(), static_cast<std::size_t>(count));
  }
  return answer;
}

}  // namespace

TEST_CASE("GET /metrics is answered with the text") {
  const ScrapeServer server(0);
  const std::string answer = answer_to(server, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.find("Content-Length: 18\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\nscaletrain_step 7\n"));
}

TEST_CASE("any other request is refused") {
  const ScrapeServer server(0);
  CHECK(answer_to(server, "GET /secret HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(answer_to(server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

TEST_CASE("a request without an end is dropped after a second, and one that is too long at once") {
  const ScrapeServer server(0);
  CHECK(answer_to(server, "GET /metrics").empty());
  CHECK(answer_to(server, std::string(4096, 'x')).empty());
  CHECK(answer_to(server, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("no client waits, and a port that is in use") {
  const ScrapeServer server(0);
  server.serve("nobody");
  CHECK_THROWS_AS(ScrapeServer(server.port()), core::UsageError);
}

}  // namespace scaletrain::track
