// Endpoint of a store: a host and a port.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::launcher {

struct Endpoint {
  std::string host;
  int port = 0;
};

// "host:port", "[::1]:port".
std::string to_text(const Endpoint& endpoint);

// Parses "host", "host:port", "[::1]:port", several separated by commas; `port` is the default.
// Throws core::UsageError naming --rdzv-endpoint.
std::vector<Endpoint> parse_endpoints(const std::string& text, int port);

// Returns the numeric addresses of this host that other hosts may reach: no loopback or link-local
// ones.
std::vector<std::string> own_addresses();

// Identifies the network namespace: equal on launchers that share a loopback; "": not known.
std::string own_network();

// True if `host` names this host by one of its addresses, loopback included.
bool is_own(const std::string& host);

}  // namespace scaletrain::launcher
