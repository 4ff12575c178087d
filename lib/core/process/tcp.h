// TCP connections with a limit on every wait.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

// Connects to the first address of `host` that answers, IPv6 or IPv4, each within `time`, and
// returns a non-blocking socket; none, with the reason in `why`, if no address answers.
Descriptor connect_to(const std::string& host, int port, std::chrono::milliseconds time,
                      std::string& why);

// Listens on one free port at each address of `hosts` that belongs to this machine; the sockets are
// non-blocking. Throws InternalError naming `who` if there is no such port or address.
std::vector<Descriptor> listen_on_free_port(const std::string& who,
                                            const std::vector<std::string>& hosts, int& port);

// Waits for these events of poll(2); throws at a timeout.
using WaitForSocket = std::function<void(short events)>;

// Send or receive all of `bytes` over a non-blocking socket. Return "", or the reason why the
// connection was lost; throw the errors of `wait`.
std::string send_all(int fd, std::span<const std::byte> bytes, const WaitForSocket& wait);
std::string receive_all(int fd, std::span<std::byte> bytes, const WaitForSocket& wait);

}  // namespace scaletrain::core
