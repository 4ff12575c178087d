// What replicas say to the hub, and it to them (lib/dist/hub/message.h).
#pragma once

#include <cstdint>

namespace scaletrain::parallel {

// HubMessage::kind; `number` is a part of the weights, `step` how many steps of training are done.
// The answer to each but kPart and kStop has the same kind. A replica of several ranks has said
// what all of its ranks have.
enum HubWord : std::int32_t {
  kPart = 1,  // what this replica has of a part
  kMeet,      // it has given all; the answers, of kind kPart: what it goes on from, of each
  kLeave,     // it comes to no further exchange; `number`, of async, kIsOver: as training is over
  kAwaitAll,  // the answer comes when all others have left or are lost
  kFetch,     // the answer: the part as it is now
  kStop,      // of rank 0: all replicas shall stop
  kBase,      // of another rank of its replica: the part that all begin with; no answer

  // Of rounds (lib/parallel/sync/round_mean.h), where the answer to kPart is the part's mean, and
  // to kMeet comes when all have said it.
  kAskStop,  // the hub's, unasked: where is this replica? It says kStop
  kStopAt,   // the hub's, when all have said kStop: the step of the furthest
  kWish,     // of rank 0: which tensors of their own the others shall give; `step`: the round
  kAsk,      // of another: what rank 0 wishes in that round; the answer has `number`
  // One of its tensors; the hub's, to another rank of rank 0's replica, `step`: the replica it is
  // of.
  kGive,
  kGiven,  // it has given all of them; no answer
  // Of the ranks of rank 0's replica; the answer comes when all others have, or are lost.
  kAwaitGiven,
  kGiveUp,  // of rank 0: who is waited for, of async whoever comes, counts no more; no answer
};

inline constexpr std::int32_t kIsOver = 1;     // HubMessage::number of kLeave
inline constexpr std::int32_t kShallStop = 1;  // the same of an answer

}  // namespace scaletrain::parallel
