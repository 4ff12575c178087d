#include "lib/track/scrape_server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

// What the server sends to `client` until it closes the connection.
std::string answer_to(ScrapeServer& server, const core::Descriptor& client) {
  std::string answer;
  while (true) {
    std::array<pollfd, 2> watched{pollfd{client.get(), POLLIN, 0}, pollfd{server.fd(), POLLIN, 0}};
    REQUIRE(poll(watched.data(), watched.size(), -1) > 0);
    if (watched[1].revents != 0) server.serve("scaletrain_step 7\n");
    if (watched[0].revents == 0) continue;
    std::array<char, 1024> block{};
    const ssize_t count = recv(client.get(), block.data(), block.size(), 0);
    if (count <= 0) return answer;
    answer.append(block.data(), static_cast<std::size_t>(count));
  }
}

std::string answer_to(ScrapeServer& server, std::string_view request) {
  const core::Descriptor client = connected_to(server.port());
  REQUIRE(send(client.get(), request.data(), request.size(), 0) ==
          static_cast<ssize_t>(request.size()));
  return answer_to(server, client);
}

}  // namespace

TEST_CASE("GET /metrics is answered with the text") {
  ScrapeServer server(0);
  const std::string answer = answer_to(server, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.find("Content-Length: 18\r\n") != std::string::npos);
  CHECK(answer.ends_with("\r\n\r\nscaletrain_step 7\n"));
}

TEST_CASE("any other request is refused") {
  ScrapeServer server(0);
  CHECK(answer_to(server, "GET /secret HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
  CHECK(answer_to(server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
}

TEST_CASE("a request without an end is dropped after a second, and one that is too long at once") {
  ScrapeServer server(0);
  CHECK(answer_to(server, "GET /metrics").empty());
  CHECK(answer_to(server, std::string(4096, 'x')).empty());
  CHECK(answer_to(server, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("silent clients delay no answer, and each is dropped") {
  ScrapeServer server(0);
  std::vector<core::Descriptor> silent;
  for (int i = 0; i < 40; ++i) {
    silent.push_back(connected_to(server.port()));
    server.serve("");
  }
  // The 16 newest are waited for, and the next client takes the place of the oldest.
  CHECK(answer_to(server, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
  char none = 0;
  CHECK(recv(silent.back().get(), &none, 1, MSG_DONTWAIT) == -1);  // it may still ask
  for (const core::Descriptor& client : silent) CHECK(answer_to(server, client).empty());
}

TEST_CASE("a client that takes no answer is dropped, and others are served meanwhile") {
  ScrapeServer server(0);
  const core::Descriptor slow = connected_to(server.port());
  constexpr std::string_view kRequest = "GET / HTTP/1.0\r\n\r\n";
  REQUIRE(send(slow.get(), kRequest.data(), kRequest.size(), 0) == std::ssize(kRequest));
  server.serve(std::string(std::size_t{1} << 25, 'x'));  // more than a socket takes
  CHECK(answer_to(server, kRequest).starts_with("HTTP/1.1 200 "));
}

TEST_CASE("no client waits, and a port that is in use") {
  ScrapeServer server(0);
  server.serve("nobody");
  CHECK_THROWS_AS(ScrapeServer(server.port()), core::UsageError);
}

}  // namespace scaletrain::track
