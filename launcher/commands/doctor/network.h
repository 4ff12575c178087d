// Checks of host names and ports, which a rendezvous needs.
#pragma once

#include <string>

#include "launcher/commands/doctor/finding.h"

namespace scaletrain::launcher {

// Checks that the loopback interface accepts connections, by IPv4 and (if available) IPv6, and that
// torchrun's fixed port is free.
Findings check_ports();

// Checks that `name` resolves quickly; `what` is the label of the line. `is_ours`: one of its
// addresses must be this machine's.
Finding check_name(const std::string& what, const std::string& name, bool is_ours);

// Checks localhost, this machine's name, and MASTER_ADDR if it is set.
Findings check_names();

}  // namespace scaletrain::launcher
