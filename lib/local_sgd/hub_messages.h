// Messages between replica clients and the coordinator (lib/dist/hub/message.h).
#pragma once

#include <cstdint>

namespace scaletrain::local_sgd {

// HubMessage::kind; `number` is a part of the weights, `step` the number of steps done. An answer
// has the kind of its request, except to kPart and kStop. A replica of several ranks has sent a
// message when all its ranks have.
enum HubMessageKind : std::int32_t {
  kPart = 1,     // a part of the weights, or its change
  kSynchronize,  // all parts are sent; async: answered by a kPart for each, the new global weights
  kLeave,        // synchronizes no more; async: `number` is kFinished if training is over
  kAwaitAll,     // answered when all others have left or are lost
  kGiveUp,       // rank 0 drops the replicas that it waits for (async: all others); not answered

  // Async only:
  kFetch,        // answered by the part's global weights
  kStop,         // rank 0 asks all replicas to stop; also used below
  kInitialPart,  // initial weights of the other ranks of rank 0's replica; not answered

  // DiLoCo only (lib/local_sgd/diloco_coordinator.h): the answer to kPart is the part's mean, that
  // to kSynchronize comes when all replicas have sent it. A replica that stops sends kStop.
  kStopRequested,  // the coordinator asks a replica to stop; it replies with kStop
  kStopStep,       // step of the furthest replica, sent to all when all have sent kStop
  kRequest,        // rank 0 requests replica-local states; `number`: StateRequest
  kReadRequest,    // other replicas read request number `step`; `number` of the answer
  // One replica-local tensor. The coordinator forwards it to rank 0's replica; then `step` is the
  // replica that it belongs to.
  kState,
  kStatesSent,   // all tensors are sent; not answered
  kAwaitStates,  // rank 0's replica waits until all others have sent kStatesSent or are lost
};

inline constexpr std::int32_t kFinished = 1;  // HubMessage::number of kLeave
inline constexpr std::int32_t kStopFlag = 1;  // HubMessage::number of an answer

}  // namespace scaletrain::local_sgd
