#include "launcher/workers/lost_peer.h"

#include <algorithm>
#include <array>

namespace scaletrain::launcher {
namespace {

constexpr std::array<std::string_view, 8> kPhrases{
    "Connection closed by peer",                           // Gloo
    "Connection reset by peer",                            // Gloo, TCPStore
    "Broken pipe",                                         // Gloo, TCPStore
    "Connection was likely closed",                        // TCPStore
    "failed to recv, got 0 bytes",                         // TCPStore
    "remote process exited or there was a network error",  // NCCL
    "ncclRemoteError",                                     // ProcessGroupNCCL
    "remote error detected from rank",                     // ProcessGroupNCCL
};

}  // namespace

bool reports_lost_peer(std::string_view message) {
  return std::any_of(kPhrases.begin(), kPhrases.end(), [&](std::string_view phrase) {
    return message.find(phrase) != std::string_view::npos;
  });
}

}  // namespace scaletrain::launcher
