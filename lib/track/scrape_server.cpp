#include "lib/track/scrape_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::track {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::size_t kMaxRequest = 4096, kMostClients = 16;
constexpr int kBacklog = 16;

std::string answer(const char* status, std::string_view text) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, text.size(), text);
}

// Returns true when the head of a request is complete, or will never be.
bool read_request(int fd, std::string& request) {
  while (request.size() < kMaxRequest) {
    std::array<char, 1024> block{};
    const ssize_t count = recv(fd, block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return false;
    if (count <= 0) break;
    request.append(block.data(), static_cast<std::size_t>(count));
    if (request.find("\r\n\r\n") != std::string::npos) return true;
  }
  request.clear();
  return true;
}

}  // namespace

ScrapeServer::ScrapeServer(int port)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      events_(epoll_create1(EPOLL_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const general = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (!socket_ || !events_ || !timer_ ||
      setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(socket_.get(), general, size) != 0 || listen(socket_.get(), kBacklog) != 0 ||
      getsockname(socket_.get(), general, &size) != 0) {
    throw core::UsageError(fmt::format("127.0.0.1:{}", port),
                           "cannot listen there: " + core::errno_text(errno),
                           "choose a free port with log.port");
  }
  port_ = ntohs(address.sin_port);
  watch(socket_.get(), EPOLLIN);
  watch(timer_.get(), EPOLLIN | EPOLLET);
}

void ScrapeServer::watch(int fd, std::uint32_t events) const {
  epoll_event event{.events = events, .data = {.fd = fd}};
  epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &event);
}

void ScrapeServer::serve(const std::string& text) {
  std::array<epoll_event, kMostClients + 2> noted{};  // each of them is looked at
  epoll_wait(events_.get(), noted.data(), static_cast<int>(noted.size()), 0);
  admit();
  clients_.remove_if([&](Client& client) { return !attend(client, text); });
  drop_late();
}

void ScrapeServer::admit() {
  for (std::size_t i = 0; i < kMostClients; ++i) {
    core::Descriptor fd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    watch(fd.get(), EPOLLIN | EPOLLOUT | EPOLLET);
    if (clients_.size() == kMostClients) clients_.pop_front();
    clients_.push_back({.fd = std::move(fd), .since = core::now()});
  }
}

bool ScrapeServer::attend(Client& client, const std::string& text) const {
  if (client.answer.empty()) {
    if (!read_request(client.fd.get(), client.request)) return true;
    if (client.request.empty()) return false;
    const bool is_known =
        client.request.starts_with("GET /metrics ") || client.request.starts_with("GET / ");
    client.answer = is_known ? answer("200 OK", text) : answer("404 Not Found", "");
    client.since = core::now();
  }
  while (!client.answer.empty()) {
    const ssize_t count = send(client.fd.get(), client.answer.data(), client.answer.size(),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    client.answer.erase(0, static_cast<std::size_t>(count));
  }
  return false;
}

// The timer makes fd() readable when the next client is late.
void ScrapeServer::drop_late() {
  const core::SteadyTime now = core::now();
  clients_.remove_if([&](const Client& client) { return now - client.since >= kPatience; });
  itimerspec wake{};
  if (!clients_.empty()) wake.it_value = {.tv_sec = kPatience.count(), .tv_nsec = 1};
  timerfd_settime(timer_.get(), 0, &wake, nullptr);
}

}  // namespace scaletrain::track
