// Checks of names and ports: what a rendezvous needs.
#pragma once

#include <string>

#include "launcher/commands/doctor/finding.h"

namespace scaletrain::launcher {

// The loopback interface takes a connection, by IPv4 and, where there is, IPv6; torchrun's fixed
// port is free.
Findings check_ports();

// `name` resolves, and quickly; `what` is the line's name. `is_ours`: one of its addresses must be
// one of this machine's.
Finding check_name(const std::string& what, const std::string& name, bool is_ours);

// localhost, this machine's own name, and MASTER_ADDR where it is set.
Findings check_names();

}  // namespace scaletrain::launcher
