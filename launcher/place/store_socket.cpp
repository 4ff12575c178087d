#include "launcher/place/store_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "lib/core/error.h"
#include "lib/core/process/programs.h"

namespace scaletrain::launcher {
namespace {

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

// Binds to `port` (0: a free one) on the loopback interface or on all. On failure the descriptor is
// empty and errno has the reason.
StoreSocket bind_to(bool local, int port) {
  // IPv6 sockets take IPv4 connections too; a kernel without IPv6 gets the other kind.
  bool v6 = !local;
  core::Descriptor fd(socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd && v6) {
    v6 = false;
    fd = core::Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  if (!fd) return {};
  // A restart on a fixed port must not wait for old connections to time out.
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);

  sockaddr_storage address{};
  socklen_t length = 0;
  if (v6) {
    auto* const any = reinterpret_cast<sockaddr_in6*>(&address);
    any->sin6_family = AF_INET6;
    any->sin6_port = htons(static_cast<std::uint16_t>(port));
    length = sizeof *any;
    const int off = 0;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  } else {
    auto* const any = reinterpret_cast<sockaddr_in*>(&address);
    any->sin_family = AF_INET;
    any->sin_port = htons(static_cast<std::uint16_t>(port));
    any->sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    length = sizeof *any;
  }
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return {};
  }
  const std::uint16_t bound = v6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                 : reinterpret_cast<sockaddr_in*>(&address)->sin_port;
  return {.fd = std::move(fd), .port = ntohs(bound)};
}

}  // namespace

StoreSocket listen_for_store(const Placement& placement) {
  const bool local = placement.master_addr == "127.0.0.1" || placement.master_addr == "localhost";
  if (local && placement.world_size() > 1) require_loopback();
  StoreSocket socket = bind_to(local, placement.master_port);
  if (!socket.fd || listen(socket.fd.get(), SOMAXCONN) != 0) refuse(placement, errno);
  return socket;
}

StoreSocket reserve_port() {
  StoreSocket socket = bind_to(false, 0);
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
