#include "lib/core/process/tcp.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

using std::chrono::milliseconds;

bool becomes_writable(int fd, milliseconds time) {
  pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
  const SteadyTime end = now() + time;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - now());
    const int count = ::poll(&one, 1, static_cast<int>(std::max<std::int64_t>(0, left.count())));
    if (count >= 0 || errno != EINTR) return count > 0;
  }
}

Descriptor connect_to(const addrinfo& address, milliseconds time, std::string& why) {
  Descriptor fd(
      ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  int error = fd ? 0 : errno;
  if (fd && ::connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t bytes = sizeof error;
      error = becomes_writable(fd.get(), time) ? 0 : ETIMEDOUT;
      if (error == 0) ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    }
  }
  if (error == 0) {
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
  why = errno_text(error);
  return {};
}

}  // namespace

namespace {

// Listens at the first address of `host` on `port`; a port of 0 becomes the free port that was
// chosen.
Descriptor listen_at(const std::string& host, int& port, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  error = EADDRNOTAVAIL;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  Descriptor fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  auto* const any = reinterpret_cast<sockaddr*>(&bound);
  if (!fd || ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::getsockname(fd.get(), any, &length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    error = errno;
    return {};
  }
  port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(any)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(any)->sin_port);
  return fd;
}

}  // namespace

Descriptor connect_to(const std::string& host, int port, milliseconds time, std::string& why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found)) {
    why = fmt::format("its name does not resolve: {}", ::gai_strerror(error));
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, &::freeaddrinfo);
  why = "it has no address";
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (Descriptor fd = connect_to(*one, time, why)) return fd;
  }
  return {};
}

std::vector<Descriptor> listen_on_free_port(const std::string& who,
                                            const std::vector<std::string>& hosts, int& port) {
  constexpr int kAttempts = 16;  // a free port of the first address may be in use at another one
  std::string why = "no address is of this machine";
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    port = 0;
    std::vector<Descriptor> sockets;
    bool is_taken = false;
    for (const std::string& host : hosts) {
      int error = 0;
      Descriptor fd = listen_at(host, port, error);
      if (fd) {
        sockets.push_back(std::move(fd));
      } else {
        is_taken = is_taken || error == EADDRINUSE;
        why = fmt::format("{}: {}", host, errno_text(error));
      }
    }
    if (!sockets.empty() && !is_taken) return sockets;
    if (!is_taken) break;
  }
  throw InternalError(who, "has no port: " + why, "check that a network interface is up");
}

std::string send_all(int fd, std::span<const std::byte> bytes, const WaitForSocket& wait) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait(POLLOUT);
    } else if (errno != EINTR) {
      return errno_text(errno);
    }
  }
  return "";
}

std::string receive_all(int fd, std::span<std::byte> bytes, const WaitForSocket& wait) {
  while (!bytes.empty()) {
    const ssize_t count = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (count == 0) {
      return "it closed the connection";
    } else if (errno == EAGAIN) {
      wait(POLLIN);
    } else if (errno != EINTR) {
      return errno_text(errno);
    }
  }
  return "";
}

}  // namespace scaletrain::core
