#include "launcher/commands/doctor/network.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "launcher/place/placement.h"
#include "lib/core/clock.h"
#include "lib/core/descriptor.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

constexpr int kFixedPort = 29500;
constexpr double kSlowLookupS = 1;

struct LoopbackAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

LoopbackAddress loopback(int family, int port) {
  LoopbackAddress result;
  if (family == AF_INET6) {
    auto* const address = reinterpret_cast<sockaddr_in6*>(&result.storage);
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_loopback;
    address->sin6_port = htons(static_cast<std::uint16_t>(port));
    result.length = sizeof *address;
  } else {
    auto* const address = reinterpret_cast<sockaddr_in*>(&result.storage);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address->sin_port = htons(static_cast<std::uint16_t>(port));
    result.length = sizeof *address;
  }
  return result;
}

// Listens on a loopback address and connects to itself; errno, or 0.
int talk_to_self(int family) {
  LoopbackAddress address = loopback(family, 0);
  const core::Descriptor listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const core::Descriptor caller(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || !caller || bind(listener.get(), address.get(), address.length) != 0 ||
      listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), address.get(), &address.length) != 0 ||
      connect(caller.get(), address.get(), address.length) != 0) {
    return errno;
  }
  return 0;
}

bool is_free(int port) {
  LoopbackAddress address = loopback(AF_INET, port);
  const core::Descriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return bind(listener.get(), address.get(), address.length) == 0;
}

std::string digits_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return text.data();
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr) != 0;
  }
  const auto* const four = reinterpret_cast<const sockaddr_in*>(address);
  return ntohl(four->sin_addr.s_addr) >> 24U == IN_LOOPBACKNET;
}

// True if this machine has the address: only then can a socket be bound to it.
bool is_local(const sockaddr* address, socklen_t length) {
  const core::Descriptor fd(socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd && bind(fd.get(), address, length) == 0;
}

}  // namespace

Findings check_ports() {
  Findings findings;
  if (const int error = talk_to_self(AF_INET); error != 0) {
    findings.push_back(failure("loopback", "127.0.0.1: " + core::errno_text(error),
                               "bring the interface up: ip link set lo up"));
  } else {
    const int v6 = talk_to_self(AF_INET6);
    findings.push_back(well("loopback", v6 == 0 ? "127.0.0.1 and ::1 take connections"
                                                : "127.0.0.1 takes connections; there is no ::1"));
  }
  if (!is_free(kFixedPort)) {
    findings.push_back(warning("port 29500", "is in use",
                               "with several nodes use another --master-port on all of them"));
  } else {
    findings.push_back(well("port 29500", "is free"));
  }
  return findings;
}

Finding check_name(const std::string& what, const std::string& name, bool is_ours) {
  const core::SteadyTime start = core::now();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = getaddrinfo(name.c_str(), nullptr, &hints, &list);
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, freeaddrinfo);
  const double seconds = core::seconds_since(start);
  if (status != 0) {
    return failure(what, fmt::format("\"{}\" does not resolve: {}", name, gai_strerror(status)),
                   "add it to DNS or /etc/hosts, or launch with addresses in digits");
  }
  std::vector<std::string> addresses;
  bool found_ours = false, only_loopback = true;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    addresses.push_back(digits_of(one->ai_addr, one->ai_addrlen));
    found_ours = found_ours || is_local(one->ai_addr, one->ai_addrlen);
    only_loopback = only_loopback && is_loopback(one->ai_addr);
  }
  const std::string found = fmt::format("\"{}\" is {}", name, fmt::join(addresses, ", "));
  if (is_ours && !found_ours) {
    return failure(what, found + ", which this machine does not have",
                   "correct its entry in DNS or /etc/hosts");
  }
  if (is_ours && only_loopback && name != "localhost") {
    return warning(what, found + ", which only this machine can reach",
                   "for jobs on several nodes give its name another address (/etc/hosts), or use "
                   "numeric addresses");
  }
  if (seconds > kSlowLookupS) {
    return warning(what, fmt::format("{}, after {:.1f} s", found, seconds),
                   "a name server does not answer: see /etc/resolv.conf");
  }
  return well(what, found);
}

Findings check_names() {
  Findings findings{check_name("localhost", "localhost", true),
                    check_name("host name", host_name(), true)};
  const char* const master = std::getenv("MASTER_ADDR");
  if (master != nullptr && *master != '\0') {
    findings.push_back(check_name("MASTER_ADDR", master, false));
  }
  return findings;
}

}  // namespace scaletrain::launcher
