#include "lib/track/scrape_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

constexpr double kPatienceS = 1;
constexpr std::size_t kMaxRequest = 4096;
constexpr int kBacklog = 16;

void limit_waits(int fd) {
  const timeval wait{.tv_sec = 1, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
}

// Returns the head of a request; "" if it does not arrive in time or is too long.
std::string read_request(int fd) {
  std::string request;
  const core::SteadyTime since = core::now();
  while (request.size() < kMaxRequest && core::seconds_since(since) < kPatienceS) {
    std::array<char, 1024> block{};
    const ssize_t count = recv(fd, block.data(), block.size(), 0);
    if (count <= 0) return "";
    request.append(block.data(), static_cast<std::size_t>(count));
    if (request.find("\r\n\r\n") != std::string::npos) return request;
  }
  return "";
}

void send_all(int fd, std::string_view rest) {
  const core::SteadyTime since = core::now();
  while (!rest.empty() && core::seconds_since(since) < kPatienceS) {
    const ssize_t count = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string answer(const char* status, std::string_view text) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, text.size(), text);
}

}  // namespace

ScrapeServer::ScrapeServer(int port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (!socket_ || setsockopt(fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd(), general, size) != 0 || listen(fd(), kBacklog) != 0 ||
      getsockname(fd(), general, &size) != 0) {
    throw core::UsageError(fmt::format("127.0.0.1:{}", port),
                           "cannot listen there: " + core::errno_text(errno),
                           "choose a free port with log.port");
  }
  port_ = ntohs(address.sin_port);
}

void ScrapeServer::serve(const std::string& text) const {
  const core::Descriptor client(accept4(fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!client) return;
  limit_waits(client.get());
  const std::string request = read_request(client.get());
  if (request.empty()) return;
  const bool is_known = request.starts_with("GET /metrics ") || request.starts_with("GET / ");
  send_all(client.get(), is_known ? answer("200 OK", text) : answer("404 Not Found", ""));
}

}  // namespace scaletrain::track
