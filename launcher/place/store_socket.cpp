#include "launcher/place/store_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>

#include "lib/core/error.h"
#include "lib/core/process/host.h"
#include "lib/core/process/programs.h"

namespace scaletrain::launcher {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

void refuse_without_descriptors(int error) {
  if (error != EMFILE && error != ENFILE) return;
  throw core::Error(core::ExitCode::kMemory, "store", core::errno_text(error),
                    "raise the limit of open files: ulimit -n");
}

[[noreturn]] void refuse(const Placement& placement, int error) {
  refuse_without_descriptors(error);
  if (placement.master_port != 0) {
    throw core::UsageError(fmt::format("--master-port {}", placement.master_port),
                           fmt::format("cannot listen on it: {}", core::errno_text(error)),
                           placement.nnodes == 1
                               ? "give another port, or leave the flag out to get a free one"
                               : "give every node another port");
  }
  throw core::InternalError("store", "cannot listen: " + core::errno_text(error),
                            "check that the loopback interface is up");
}

// Workers that meet at a loopback interface that is down would wait for each other until the last
// time-out.
void require_loopback() {
  const core::Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);  // nothing is sent: this only selects the route
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd || connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
  throw core::UsageError(
      "127.0.0.1", "cannot be reached: " + core::errno_text(errno),
      "the workers need it for the rendezvous: enable the interface with ip link set lo up");
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// Returns addresses to listen on at `port`, of all interfaces where `host` is null; nullptr if
// `host` does not resolve.
Addresses addresses_of(const char* host, int family, int port) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &freeaddrinfo};
}

// On failure the descriptor is empty and errno has the reason.
StoreSocket bind_to(const addrinfo& address) {
  core::Descriptor fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return {};
  // A restart on a fixed port must not wait for old connections to time out.
  const int on = 1, off = 0;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool v6 = address.ai_family == AF_INET6;  // takes IPv4 connections too
  if (v6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (bind(fd.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return {};
  }
  const std::uint16_t port = v6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                : reinterpret_cast<sockaddr_in*>(&bound)->sin_port;
  return {.fd = std::move(fd), .port = ntohs(port)};
}

// A kernel without IPv6 gets a socket of IPv4.
StoreSocket bind_to_all(int port) {
  for (const int family : {AF_INET6, AF_INET}) {
    const Addresses all = addresses_of(nullptr, family, port);
    if (!all) continue;
    StoreSocket socket = bind_to(*all);
    if (socket.fd || errno != EAFNOSUPPORT) return socket;
  }
  return {};
}

// Binds to an address of `host`; to all interfaces if none of them is an address of this machine.
StoreSocket bind_to_host(const std::string& host, int port) {
  const Addresses found = addresses_of(host.c_str(), AF_UNSPEC, port);
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    StoreSocket socket = bind_to(*one);
    if (socket.fd || (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)) return socket;
  }
  return bind_to_all(port);
}

}  // namespace

// Workers connect to the address that they are given, so that the store needs no other one. Nodes
// may resolve a name to different addresses.
StoreSocket listen_for_store(const Placement& placement) {
  const std::string& host = placement.master_addr;
  const bool is_local = core::is_loopback(host);
  if (is_local && placement.world_size() > 1) require_loopback();
  StoreSocket socket =
      is_local || placement.nnodes == 1 || core::is_address(host)
          ? bind_to_host(host == "localhost" ? kLoopback : host, placement.master_port)
          : bind_to_all(placement.master_port);
  if (!socket.fd || listen(socket.fd.get(), SOMAXCONN) != 0) refuse(placement, errno);
  return socket;
}

StoreSocket reserve_port() {
  StoreSocket socket = bind_to_all(0);
  if (!socket.fd) {
    refuse_without_descriptors(errno);
    throw core::InternalError("store", "no port is free: " + core::errno_text(errno),
                              "check that a network interface is up");
  }
  return socket;
}

StoreSocket start_listening(StoreSocket reserved) {
  if (listen(reserved.fd.get(), SOMAXCONN) != 0) {
    throw core::UsageError("store", "cannot listen: " + core::errno_text(errno),
                           "another program uses the port");
  }
  return reserved;
}

core::SpawnRequest store_server(int fd) {
  return {.arguments = {core::program_beside_us("scaletrain-worker"), "store", "--fd",
                        std::to_string(fd)},
          .variables = {},
          .descriptors = {{fd, fd}},
          .ignored_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}};
}

}  // namespace scaletrain::launcher
