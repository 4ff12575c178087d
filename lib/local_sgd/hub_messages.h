// Message types between replicas and the hub (lib/dist/hub/message.h).
#pragma once

#include <cstdint>

namespace scaletrain::local_sgd {

// HubMessage::kind; `number` is a part of the weights, `step` the number of steps done. The answer
// has the same kind, except to kPart and kStop. A replica of several ranks has sent a message when
// all its ranks have.
enum HubMessageKind : std::int32_t {
  kPart = 1,     // a part of the weights, or its change
  kSynchronize,  // all parts are sent; async: answered by a kPart for each, the new global weights
  kLeave,        // synchronizes no more; async: `number` is kFinished if training is over
  kAwaitAll,     // answered when all others have left or are lost
  kFetch,        // answered by the part's global weights
  kStop,         // rank 0 asks all replicas to stop
  kInitialPart,  // an initial part, sent by the other ranks of rank 0's replica; not answered

  // For synchronous rounds (lib/local_sgd/diloco_coordinator.h): the answer to kPart is the part's
  // mean; that to kSynchronize comes when all replicas have sent it.
  kStopRequested,  // the hub announces that a replica wants to stop; replicas reply with kStop
  kStopStep,       // the hub sends the furthest replica's step when all have sent kStop
  kRequest,      // rank 0 requests rank-local tensors of the others; `step`: number of the request
  kReadRequest,  // other replicas read the request of number `step`; `number` of the answer
  // One rank-local tensor. The hub sends it on to the ranks of rank 0's replica; then `step` is the
  // replica that it belongs to.
  kState,
  kStatesSent,   // all tensors are sent; not answered
  kAwaitStates,  // rank 0's replica waits until all others have sent kStatesSent or are lost
  // Rank 0 gives up the replicas that it waits for (async: all others); not answered.
  kGiveUp,
};

inline constexpr std::int32_t kFinished = 1;  // HubMessage::number of kLeave
inline constexpr std::int32_t kStopFlag = 1;  // HubMessage::number of an answer

}  // namespace scaletrain::local_sgd
