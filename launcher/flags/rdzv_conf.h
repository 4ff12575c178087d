// torchrun's --rdzv-conf: time limits of the rendezvous of several nodes.
#pragma once

#include <map>
#include <string>

#include "launcher/flags/agent_options.h"

namespace scaletrain::launcher {

// "join_timeout=600,is_host=1". Throws core::UsageError for what is not KEY=VALUE, and for a key
// that torchrun does not know.
std::map<std::string, std::string> parse_rdzv_conf(const std::string& text);

// Puts torchrun's seconds where no flag of ours was given: join_timeout (timeout for static nodes),
// last_call_timeout, heartbeat_timeout. The other keys are accepted and ignored: the store
// always uses TCP, its host is detected, and there is no timeout for closing.
void apply_rdzv_conf(const std::map<std::string, std::string>& conf, AgentOptions& options);

}  // namespace scaletrain::launcher
