// Checks names and addresses of hosts.
#pragma once

#include <string>

namespace scaletrain::core {

// Throws core::UsageError at `place` if no resolver takes `host`: empty, with a port, a scheme or
// brackets, a number that is no address, a multicast address, a link-local IPv6 address without its
// interface, or a label of a name that is empty or too long. A name need not resolve yet.
void check_host(const std::string& place, const std::string& host);

// True for an address in digits of a host that others may connect to.
bool is_address(const std::string& host);

// True for "localhost" and the loopback addresses of IPv4 and IPv6.
bool is_loopback(const std::string& host);

// True for 0.0.0.0 and ::, which name all interfaces to a listener and no host to a client.
bool is_any_address(const std::string& host);

}  // namespace scaletrain::core
