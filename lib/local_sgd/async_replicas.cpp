#include "lib/local_sgd/async_replicas.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "lib/core/log.h"
#include "lib/local_sgd/async_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

std::unique_ptr<Coordinator> AsyncReplicas::make_coordinator(HubRanks hub) const {
  return std::make_unique<AsyncCoordinator>(hub, steps_, options_.sync.staleness);
}

// The answers prove that the coordinator has the initial weights before any training.
void AsyncReplicas::join() {
  for (Part& part : parts_) {
    part.global = on_host(weights_of(part));
    if (mesh_.replica() != 0) continue;
    link_->send({.kind = kInitialPart, .body = as_bytes(part.global)});
    answer_to(kInitialPart);
  }
}

void AsyncReplicas::after_step(std::int64_t step) {
  WeightSync::after_step(step);
  if (steps_ != options_.total_steps) return;
  const Waiting waiting(options_.beat);
  leave(std::nullopt);
}

void AsyncReplicas::synchronize(const Parts& due) {
  const at::NoGradGuard no_grad;
  if (due.empty()) return;
  const Waiting waiting(options_.beat);
  for (const Part* const part : due) {
    const at::Tensor weights = on_host(weights_of(*part));
    link_->send({.kind = kPart,
                 .number = static_cast<std::int32_t>(part->number),
                 .step = steps_,
                 .body = as_bytes(weights - part->global)});
    communicated_bytes_ += static_cast<std::int64_t>(weights.nbytes());
  }
  link_->send({.kind = kSynchronize, .step = steps_});
  for (Part* const part : due) {
    part->global = as_floats(answer_to(kPart).body).clone();
    continue_from(*part, part->global);
  }
}

void AsyncReplicas::stop() {
  options_.beat.enter(core::Phase::kWaiting);
  if (steps_ == options_.total_steps) return;  // it has left
  if (hosts()) link_->send({.kind = kStop});
  synchronize(differing_parts());
  options_.beat.enter(core::Phase::kWaiting);
  leave(stop_limit());
}

// Rank 0's replica continues with the final global weights.
void AsyncReplicas::leave(std::optional<std::chrono::milliseconds> limit) {
  const bool is_over = steps_ == options_.total_steps;
  link_->send({.kind = kLeave, .number = is_over ? kFinished : 0});
  answer_to(kLeave);
  if (mesh_.replica() != 0) return;
  link_->send({.kind = kAwaitAll});
  std::optional<dist::HubMessage> answer;
  if (hosts() && limit && !(answer = link_->receive_within(*limit))) {
    core::warn(
        "some replicas did not respond within {:g} s: their progress since the last "
        "synchronization is lost",
        std::chrono::duration<double>(*limit).count());
    link_->send({.kind = kGiveUp});
  }
  if (!answer) answer_to(kAwaitAll);
  for (const Part& part : parts_) set_weights(part, as_floats(answer_to(kPart).body));
}

dist::HubMessage AsyncReplicas::answer_to(std::int32_t kind) {
  for (;;) {
    dist::HubMessage answer = link_->receive();
    if (answer.kind != kind) continue;
    stop_requested_ = stop_requested_ || (kind == kPart && answer.number == kStopFlag);
    return answer;
  }
}

}  // namespace scaletrain::local_sgd
