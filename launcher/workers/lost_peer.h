// Recognizes errors of a program that only report the loss of another rank.
#pragma once

#include <string_view>

namespace scaletrain::launcher {

// `message`: of an error file. True for what PyTorch's backends (Gloo, NCCL) and its TCPStore say
// when the process at the other end has ended: the cause is elsewhere.
bool reports_lost_peer(std::string_view message);

}  // namespace scaletrain::launcher
