// Recognizes errors of a program that only report the loss of another rank.
#pragma once

#include <string_view>

namespace scaletrain::launcher {

// True if `message`, from a worker's error file, is an error of Gloo, NCCL or TCPStore about a
// closed peer. The cause of the failure is then on another rank.
bool reports_lost_peer(std::string_view message);

}  // namespace scaletrain::launcher
