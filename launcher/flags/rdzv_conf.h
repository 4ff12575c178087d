// torchrun's --rdzv-conf: time limits of the rendezvous of several nodes.
#pragma once

#include <map>
#include <string>

#include "launcher/flags/agent_options.h"

namespace scaletrain::launcher {

// Parses "join_timeout=600,is_host=1". Throws core::UsageError for text that is not KEY=VALUE, and
// for a key that torchrun does not have.
std::map<std::string, std::string> parse_rdzv_conf(const std::string& text);

// Applies torchrun's values, in seconds, unless the corresponding scaletrain flag is given:
// join_timeout (timeout for static nodes), last_call_timeout, heartbeat_timeout. The other keys are
// accepted and ignored: the store always uses TCP, its host is detected, and closing has no
// timeout.
void apply_rdzv_conf(const std::map<std::string, std::string>& conf, AgentOptions& options);

}  // namespace scaletrain::launcher
