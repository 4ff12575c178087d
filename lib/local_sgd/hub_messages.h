// Messages between decoupled replicas and their coordinator (lib/dist/hub/message.h).
#pragma once

#include <cstdint>

namespace scaletrain::local_sgd {

// HubMessage::kind; `number` is a part of the weights, `step` the number of steps done. An answer
// has the kind of its request, except to kStop. A replica of several ranks has sent a message when
// all its ranks have.
enum HubMessageKind : std::int32_t {
  // A part of the weights, or its change. DiLoCo: answered by the part's mean. Async: answered
  // after kSynchronize by the part's new global weights; `number` of the answer may be kStopFlag.
  kPart = 1,
  kSynchronize,  // all parts are sent; DiLoCo: answered when all replicas have sent it
  kStop,         // DiLoCo: a replica stops; async: rank 0 asks all replicas to stop
  kLeave,        // synchronizes no more; `number` is kFinished if training is over
  // Answered when all other replicas have left or are lost. Async: then all parts follow (kPart).
  kAwaitAll,
  kGiveUp,  // rank 0 drops the replicas that it waits for (async: all others); not answered

  kInitialPart,  // async: initial weights, from the ranks of rank 0's replica

  // DiLoCo only (lib/local_sgd/diloco_coordinator.h):
  kStopRequested,  // the coordinator asks a replica to stop; it replies with kStop
  kStopStep,       // step of the furthest replica, sent to all when all have sent kStop
  // Rank 0 requests replica-local states; `number`: StateRequest. Forwarded to the other replicas.
  kRequest,
  // One replica-local tensor. The coordinator forwards it to rank 0's replica with the sender's
  // replica number as `step`.
  kState,
  kStatesSent,   // all tensors are sent; not answered
  kAwaitStates,  // rank 0's replica waits until all others have sent kStatesSent or are lost
};

inline constexpr std::int32_t kFinished = 1;  // HubMessage::number of kLeave
inline constexpr std::int32_t kStopFlag = 1;  // HubMessage::number of an async answer

}  // namespace scaletrain::local_sgd
