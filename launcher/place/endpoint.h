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

// "host", "host:port", "[::1]:port", several with commas between them; `port` is that of those that
// name none. Throws core::UsageError naming --rdzv-endpoint.
std::vector<Endpoint> parse_endpoints(const std::string& text, int port);

// The addresses of this host in digits that others may reach: none of loopback or of one link only.
std::vector<std::string> own_addresses();

// Identifies the network namespace: equal on launchers that share a loopback; "": not known.
std::string own_network();

// True if `host` names this host by one of its addresses, loopback included.
bool is_own(const std::string& host);

}  // namespace scaletrain::launcher
