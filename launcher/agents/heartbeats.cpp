#include "launcher/agents/heartbeats.h"

#include <string>

namespace scaletrain::launcher {

std::vector<Peer*> read_heartbeats(KeyStore& store, Membership& membership,
                                   std::chrono::milliseconds lost_after, core::SteadyTime now) {
  std::vector<std::string> keys;
  std::vector<Peer*> watched, silent;
  for (Peer& peer : membership.peers()) {
    if (!peer.lost.empty()) continue;
    watched.push_back(&peer);
    keys.push_back("beat/" + peer.agent());
  }
  const std::vector<std::string> beats = store.get_all(keys);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    Peer& peer = *watched[i];
    if (beats[i] != peer.beat) {
      peer.beat = beats[i];
      peer.silence = parse<AgentHeartbeat>(peer.beat).silence;
      ++peer.beats;
      peer.alive = now;
    } else if (now - peer.alive >= lost_after) {
      silent.push_back(&peer);
    }
  }
  return silent;
}

}  // namespace scaletrain::launcher
