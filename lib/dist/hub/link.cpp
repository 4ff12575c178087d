#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <sstream>
#include <utility>

#include "lib/core/error.h"
#include "lib/dist/hub/hub.h"
#include "lib/dist/hub/socket.h"

namespace scaletrain::dist {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

core::Descriptor connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  const Addresses addresses(found, &freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    core::Descriptor fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (fd && connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
  }
  return {};
}

}  // namespace

void keep_alive(int fd) {
  const auto set = [fd](int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 60);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

HubLink::HubLink(const std::string& address, int rank) : rank_(rank) {
  std::istringstream words(address);
  std::string word, port, host;
  words >> word >> port >> host;
  fd_ = connect_to(host, port);
  if (!fd_) lose(fmt::format("cannot be reached at {}: {}", host, core::errno_text(errno)));
  keep_alive(fd_.get());
  const auto* const bytes = reinterpret_cast<const std::byte*>(word.data());
  send({.number = rank, .body = {bytes, bytes + word.size()}});
  receive();
}

void HubLink::send(const HubMessage& message) {
  const HubHeader header{.kind = message.kind,
                         .number = message.number,
                         .step = message.step,
                         .bytes = message.body.size()};
  write(&header, sizeof header);
  write(message.body.data(), message.body.size());
}

HubMessage HubLink::receive() {
  HubHeader header{};
  read(&header, sizeof header);
  HubMessage message{.kind = header.kind,
                     .number = header.number,
                     .step = header.step,
                     .body = std::vector<std::byte>(header.bytes)};
  read(message.body.data(), message.body.size());
  return message;
}

std::optional<HubMessage> HubLink::receive_within(std::chrono::milliseconds time) {
  pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&ready, 1, static_cast<int>(time.count())) <= 0) return std::nullopt;
  return receive();
}

void HubLink::write(const void* bytes, std::size_t count) {
  const auto* from = static_cast<const std::byte*>(bytes);
  while (count > 0) {
    const ssize_t sent = ::send(fd_.get(), from, count, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lose(core::errno_text(errno));
    from += sent;
    count -= static_cast<std::size_t>(sent);
  }
}

void HubLink::read(void* bytes, std::size_t count) {
  auto* to = static_cast<std::byte*>(bytes);
  while (count > 0) {
    const ssize_t got = ::recv(fd_.get(), to, count, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) lose(got == 0 ? "it closed the connection" : core::errno_text(errno));
    to += got;
    count -= static_cast<std::size_t>(got);
  }
}

void HubLink::lose(const std::string& why) const {
  throw core::StoppedError(fmt::format("rank {}", rank_),
                           fmt::format("rank 0, where the replicas meet, was lost: {}", why),
                           "rank 0 says why in its own log; resume from the newest checkpoint");
}

}  // namespace scaletrain::dist
