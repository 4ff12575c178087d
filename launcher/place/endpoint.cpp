#include "launcher/place/endpoint.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "launcher/flags/values.h"
#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::launcher {
namespace {

constexpr int kMostPort = 65535;

Endpoint parse_endpoint(const std::string& text, int port) {
  const bool bracketed = text.starts_with("[");
  const std::size_t host_end = bracketed ? text.find(']') : text.find(':');
  Endpoint result{.host = bracketed ? text.substr(1, host_end - 1) : text.substr(0, host_end),
                  .port = port};
  const std::size_t colon = bracketed && host_end != std::string::npos ? host_end + 1 : host_end;
  const bool has_port = colon < text.size() && text[colon] == ':';
  const bool ends_there = has_port || colon == std::string::npos || colon == text.size();
  if (result.host.empty() || !ends_there || (bracketed && host_end == std::string::npos) ||
      (has_port && colon + 1 == text.size())) {
    throw core::UsageError("--rdzv-endpoint",
                           fmt::format("\"{}\" is not allowed", core::printable(text)),
                           "give HOST, HOST:PORT or [IPv6 ADDRESS]:PORT");
  }
  if (has_port) result.port = parse_count("--rdzv-endpoint", text.substr(colon + 1), 0, kMostPort);
  return result;
}

// Returns the numeric address; "" if it is no IP address.
std::string digits(const sockaddr* address) {
  if (address == nullptr) return "";
  const bool v6 = address->sa_family == AF_INET6;
  if (!v6 && address->sa_family != AF_INET) return "";
  std::array<char, NI_MAXHOST> text{};
  const auto bytes = static_cast<socklen_t>(v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  if (getnameinfo(address, bytes, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return text.data();
}

template <class Visit>
void each_interface(const Visit& visit) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(found, &freeifaddrs);
  for (const ifaddrs* one = found; one != nullptr; one = one->ifa_next) {
    const std::string address = digits(one->ifa_addr);
    if (!address.empty() && (one->ifa_flags & IFF_UP) != 0) visit(*one, address);
  }
}

}  // namespace

std::string to_text(const Endpoint& endpoint) {
  const bool v6 = endpoint.host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", endpoint.host, endpoint.port)
            : fmt::format("{}:{}", endpoint.host, endpoint.port);
}

std::vector<Endpoint> parse_endpoints(const std::string& text, int port) {
  std::vector<Endpoint> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    result.push_back(parse_endpoint(text.substr(begin, end - begin), port));
    begin = end + 1;
  }
  return result;
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> result;
  each_interface([&](const ifaddrs& one, const std::string& address) {
    const bool one_link = address.starts_with("fe80:") || address.starts_with("169.254.");
    if ((one.ifa_flags & IFF_LOOPBACK) == 0 && !one_link) result.push_back(address);
  });
  return result;
}

std::string own_network() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::error_code unknown;
  const auto network = std::filesystem::read_symlink("/proc/self/ns/net", unknown);
  return boot.empty() || unknown ? "" : boot + " " + network.string();
}

bool is_own(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  bool own = false;
  each_interface([&](const ifaddrs&, const std::string& address) {
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      own = own || digits(one->ai_addr) == address;
    }
  });
  return own;
}

}  // namespace scaletrain::launcher
