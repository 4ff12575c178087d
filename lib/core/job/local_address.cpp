#include "lib/core/job/local_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "lib/core/error.h"
#include "lib/core/process/host.h"

namespace scaletrain::core {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const WorkerEnv& env) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(env.master_port);
  const int error = getaddrinfo(env.master_addr.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    throw UsageError(
        "MASTER_ADDR",
        fmt::format("\"{}\" does not resolve ({})", env.master_addr, gai_strerror(error)),
        "give the first node's name or address with --master-addr");
  }
  return {found, &freeaddrinfo};
}

// The local end of a datagram socket connected to `peer`, or "" where there is no route to it.
std::string local_end(const addrinfo& peer) {
  const int socket_fd = socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return "";
  sockaddr_storage local{};
  socklen_t bytes = sizeof(local);
  auto* address = reinterpret_cast<sockaddr*>(&local);
  const bool routed = connect(socket_fd, peer.ai_addr, peer.ai_addrlen) == 0 &&
                      getsockname(socket_fd, address, &bytes) == 0;
  close(socket_fd);
  std::array<char, NI_MAXHOST> text{};
  if (!routed ||
      getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return text.data();
}

}  // namespace

std::string local_address(const WorkerEnv& env) {
  const Addresses addresses = resolve(env);
  for (const addrinfo* peer = addresses.get(); peer != nullptr; peer = peer->ai_next) {
    std::string address = local_end(*peer);
    if (address.empty()) continue;
    if (env.group_world_size > 1 && !env.one_host && is_loopback(address)) {
      throw UsageError(
          "MASTER_ADDR",
          fmt::format("\"{}\" is a loopback address on node {}", env.master_addr, env.group_rank),
          "give an address of the first node that all nodes can reach with --master-addr");
    }
    return address;
  }
  throw UsageError("MASTER_ADDR", fmt::format("no route to \"{}\"", env.master_addr),
                   "give an address of the first node that this node can reach with --master-addr");
}

}  // namespace scaletrain::core
