// What replicas say to the hub, and it to them (lib/dist/hub/message.h).
#pragma once

#include <cstdint>

namespace scaletrain::parallel {

// HubMessage::kind; `number` is a part of the weights, `step` how many steps of training are done.
// The answer to each but kPart and kStop has the same kind.
enum HubWord : std::int32_t {
  kPart = 1,  // what this replica has of a part
  kMeet,      // it has given all; the answers, of kind kPart: what it goes on from, of each
  kLeave,     // it comes to no further exchange; `number` kIsOver: as training is over
  kAwaitAll,  // the answer comes when all others have left or are lost
  kFetch,     // the answer: the part as it is now
  kStop,      // of rank 0: all replicas shall stop
};

inline constexpr std::int32_t kIsOver = 1;     // HubMessage::number of kLeave
inline constexpr std::int32_t kShallStop = 1;  // the same of an answer

}  // namespace scaletrain::parallel
