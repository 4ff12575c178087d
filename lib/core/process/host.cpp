#include "lib/core/process/host.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <string_view>

#include "lib/core/error.h"
#include "lib/core/printable.h"

namespace scaletrain::core {
namespace {

constexpr std::size_t kMostLetters = 253, kMostOfLabel = 63;  // RFC 1035, section 2.3.4
constexpr const char* kExamples = "node-1, 10.0.0.1 or fd00::1";

bool is_digit(char one) { return one >= '0' && one <= '9'; }

// Letters beyond ASCII too: /etc/hosts may have such names.
bool is_letter(char one) {
  const bool is_ascii = static_cast<unsigned char>(one) < 0x80;
  return !is_ascii || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') || is_digit(one) ||
         one == '-' || one == '_';
}

bool is_label(std::string_view label) {
  return !label.empty() && label.size() <= kMostOfLabel && label.front() != '-' &&
         std::ranges::all_of(label, is_letter);
}

// A full name may end with a dot.
bool is_name(std::string_view host) {
  if (host.ends_with('.')) host.remove_suffix(1);
  if (host.size() > kMostLetters) return false;
  for (std::size_t begin = 0; begin <= host.size();) {
    const std::size_t end = std::min(host.find('.', begin), host.size());
    if (!is_label(host.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

bool is_ipv4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && !IN_MULTICAST(ntohl(address.s_addr)) &&
         !IN_BADCLASS(ntohl(address.s_addr));
}

// "ADDRESS" or "ADDRESS%INTERFACE".
bool is_ipv6(const std::string& host) {
  const std::size_t percent = host.find('%');
  in6_addr address{};
  if (inet_pton(AF_INET6, host.substr(0, percent).c_str(), &address) != 1) return false;
  const bool has_interface = percent != std::string::npos && percent + 1 < host.size();
  if (IN6_IS_ADDR_MULTICAST(&address)) return false;
  return has_interface || (percent == std::string::npos && !IN6_IS_ADDR_LINKLOCAL(&address));
}

bool is_host(const std::string& host) {
  if (host.find('\0') != std::string::npos) return false;
  if (host.find(':') != std::string::npos) return is_ipv6(host);
  const bool is_number = std::ranges::all_of(host, [](char c) { return is_digit(c) || c == '.'; });
  return is_number ? is_ipv4(host) : is_name(host);
}

// "HOST:PORT", where HOST is a name or an address of IPv4.
bool has_port(const std::string& host) {
  const std::size_t colon = host.find(':');
  return colon != std::string::npos && colon + 1 < host.size() && is_host(host.substr(0, colon)) &&
         std::all_of(host.begin() + static_cast<std::ptrdiff_t>(colon) + 1, host.end(), is_digit);
}

}  // namespace

void check_host(const std::string& place, const std::string& host) {
  if (is_host(host)) return;
  if (has_port(host)) {
    throw UsageError(place, fmt::format("\"{}\" has a port", printable(host)),
                     fmt::format("give a name or an address alone, {}, and the port by itself: "
                                 "--master-port or MASTER_PORT",
                                 kExamples));
  }
  throw UsageError(
      place, fmt::format("\"{}\" is not a host name or address", printable(host)),
      fmt::format("give a name or an address, IPv6 without brackets and link-local ones with their "
                  "interface (fe80::1%eth0): {}",
                  kExamples));
}

bool is_address(const std::string& host) {
  return (is_ipv4(host) || is_ipv6(host)) && !is_any_address(host);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

bool is_any_address(const std::string& host) {
  in6_addr wide{};
  in_addr narrow{};
  return (inet_pton(AF_INET6, host.c_str(), &wide) == 1 && IN6_IS_ADDR_UNSPECIFIED(&wide)) ||
         (inet_pton(AF_INET, host.c_str(), &narrow) == 1 && narrow.s_addr == INADDR_ANY);
}

}  // namespace scaletrain::core
