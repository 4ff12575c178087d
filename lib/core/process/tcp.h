// Connections over TCP that never wait without a limit.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

// A connection, whose socket does not block, to the first address of `host` that answers, IPv6 or
// IPv4, each within `time`; none, with the reason in `why`.
Descriptor connect_to(const std::string& host, int port, std::chrono::milliseconds time,
                      std::string& why);

// Listens on one port that nobody has, at each address of `hosts` that is of this machine and at no
// other; the sockets do not block. Throws InternalError of `who` where there is no such port, or
// none of the addresses is of this machine.
std::vector<Descriptor> listen_on_free_port(const std::string& who,
                                            const std::vector<std::string>& hosts, int& port);

// Returns when the socket may take or have something for these events of poll(2), throws where that
// takes too long.
using WaitForSocket = std::function<void(short events)>;

// All of `bytes` over a socket that does not block, however many pieces they come in. Return "", or
// why the connection is lost; throw what `wait` does.
std::string send_all(int fd, std::span<const std::byte> bytes, const WaitForSocket& wait);
std::string receive_all(int fd, std::span<std::byte> bytes, const WaitForSocket& wait);

}  // namespace scaletrain::core
