// Recognizes errors of a program that only report the loss of another rank.
#pragma once

#include <string_view>

namespace scaletrain::launcher {

// True if `message`, from a worker's error file, is one that Gloo, NCCL or TCPStore reports because
// the process at the other end has ended. The failure's cause is then on another rank.
bool reports_lost_peer(std::string_view message);

}  // namespace scaletrain::launcher
