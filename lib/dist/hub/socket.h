// Socket options for both ends of a hub's connection.
#pragma once

namespace scaletrain::dist {

// Sends small messages at once (TCP_NODELAY), and detects a host that has vanished within half a
// minute.
void keep_alive(int fd);

}  // namespace scaletrain::dist
