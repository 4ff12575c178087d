#include "lib/local_sgd/decoupled_diloco.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <map>

#include "lib/core/log.h"
#include "lib/core/process/signals.h"
#include "lib/dist/any_rank.h"
#include "lib/local_sgd/diloco_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {
namespace {

constexpr double kGraceForSteps = 0.2;  // share of the grace period for steps to the furthest one
constexpr std::chrono::milliseconds kLeastPatience{2000};  // an active replica answers within it
constexpr std::chrono::milliseconds kPollEvery{100};       // interval of checks for a stop

}  // namespace

std::unique_ptr<Coordinator> DecoupledDiloco::make_coordinator(HubRanks hub) const {
  return std::make_unique<DilocoCoordinator>(hub, steps_, options_.rounded_to.value_or(at::kFloat));
}

bool DecoupledDiloco::stop_requested() {
  while (!stop_requested_ && !stop_step_) {
    const auto message = link_->receive_within(std::chrono::milliseconds(0));
    if (!message) return false;
    note(*message);
  }
  return true;
}

// One rank of a replica learns of a stop before another: ranks of a replica follow a stop that they
// have agreed on, or that ended a synchronization of all of them.
bool DecoupledDiloco::before_step(core::StopReason& stop) {
  const bool is_one_rank = mesh_.world().world_size() == 1;
  const bool is_requested =
      is_one_rank ? knows_stop() : any_rank_knows_stop_ || stop_step_.has_value();
  if (stop == core::StopReason::kNone && is_requested) stop = core::StopReason::kTerminate;
  if (stop == core::StopReason::kNone) return true;
  if (!stopping_since_) stopping_since_ = core::now();
  options_.beat.enter(core::Phase::kWaiting);
  if (!stop_step_) {
    send_stop();
    await({kStopStep});
  }
  const bool is_late = core::seconds_since(*stopping_since_) > kGraceForSteps * options_.grace_s;
  return !dist::any_rank(mesh_.world(), is_late || steps_ >= *stop_step_, "whether to train on");
}

void DecoupledDiloco::after_step(std::int64_t step) {
  if (stop_step_) return count_step(step);  // the next synchronization is the stop's
  WeightSync::after_step(step);
}

bool DecoupledDiloco::is_synchronized() const {
  return !stop_step_ && WeightSync::is_synchronized();
}

// One part at a time, so that the coordinator holds one part of each replica. A stop gives the
// synchronization up: then kStopStep is the answer.
void DecoupledDiloco::synchronize(const Parts& due) {
  const at::NoGradGuard no_grad;
  const Waiting waiting(options_.beat);
  for (Part* const part : due) {
    const at::Tensor own = contribution(*part);
    link_->send({.kind = kPart,
                 .number = static_cast<std::int32_t>(part->number),
                 .step = steps_,
                 .body = as_bytes(on_host(own))});
    const dist::HubMessage answer = await({kPart, kStopStep});
    if (answer.kind == kStopStep) return;
    communicated_bytes_ += static_cast<std::int64_t>(own.nbytes());
    continue_from(*part, as_tensor_like(answer.body, own));
  }
  link_->send({.kind = kSynchronize, .step = steps_});
  await({kSynchronize, kStopStep});
}

void DecoupledDiloco::share(StateRequest request) {
  const at::NoGradGuard no_grad;
  options_.beat.enter(core::Phase::kWaiting);
  states_ = {};
  request = agree_on_request(request);
  if (request != StateRequest::kNothing) {
    const NamedStates own = options_.states(request);
    traits_.leads ? receive_states(own) : send_states(own);
  }
  if (request == StateRequest::kSave) saved_step_ = steps_;
  if (mesh_.world().world_size() > 1) {
    any_rank_knows_stop_ = dist::any_rank(mesh_.world(), knows_stop(), "a stop that is requested");
  }
}

StateRequest DecoupledDiloco::agree_on_request(StateRequest request) {
  if (hosts()) link_->send({.kind = kRequest, .number = static_cast<std::int32_t>(request)});
  if (traits_.leads) return request;
  while (requests_.empty()) note(receive());
  request = static_cast<StateRequest>(requests_.front());
  requests_.pop_front();
  return request;
}

void DecoupledDiloco::send_states(const NamedStates& own) {
  std::int32_t number = 0;
  for (const auto& [name, tensor] : own) {
    link_->send({.kind = kState, .number = number++, .body = as_bytes(on_host(tensor))});
  }
  link_->send({.kind = kStatesSent});
}

// A replica counts as present if all its tensors are here, shaped like `own`; this is the same on
// all ranks.
void DecoupledDiloco::receive_states(const NamedStates& own) {
  std::vector<std::map<std::size_t, at::Tensor>> received(
      static_cast<std::size_t>(mesh_.plan().model_copies()));  // by replica and number
  link_->send({.kind = kAwaitStates});
  for (;;) {
    const dist::HubMessage answer = await({kState, kAwaitStates});
    if (answer.kind == kAwaitStates) break;
    const auto number = static_cast<std::size_t>(answer.number);
    const at::Tensor tensor = as_tensor_like(answer.body, own.at(number).second);
    if (tensor.defined()) received.at(static_cast<std::size_t>(answer.step))[number] = tensor;
  }
  states_.present = {0};
  for (std::size_t replica = 1; replica < received.size(); ++replica) {
    if (received[replica].size() != own.size()) received[replica].clear();
    if (!received[replica].empty()) states_.present.push_back(static_cast<std::int64_t>(replica));
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const at::Tensor first = on_host(own[i].second);
    std::vector<at::Tensor> rows;
    for (auto& one : received) rows.push_back(one.empty() ? first : std::exchange(one[i], {}));
    states_.tensors.emplace(own[i].first, at::stack(rows));
  }
}

// Replicas that did not agree on a stop are all at the end, where they have synchronized and
// shared. A replica that did not reach the agreed step synchronizes all parts, as the furthest
// replica does.
void DecoupledDiloco::stop() {
  options_.beat.enter(core::Phase::kWaiting);
  if (stop_step_) {
    if (steps_ < *stop_step_) {
      for (Part& part : parts_) part.differs = true;
    }
    synchronize(differing_parts());
    if (saved_step_ != options_.total_steps) share(StateRequest::kSave);
  }
  options_.beat.enter(core::Phase::kWaiting);
  leave(stop_limit());
}

void DecoupledDiloco::finish() {
  options_.beat.enter(core::Phase::kWaiting);
  leave(std::nullopt);
}

// Rank 0 waits until the others have left or are lost, at most `limit`.
void DecoupledDiloco::leave(std::optional<std::chrono::milliseconds> limit) {
  if (std::exchange(has_left_, true)) return;
  link_->send({.kind = kLeave});
  await({kLeave});
  if (!hosts()) return;
  link_->send({.kind = kAwaitAll});
  if (limit) {
    link_->receive_within(*limit);
  } else {
    await({kAwaitAll});
  }
}

void DecoupledDiloco::send_stop() {
  if (has_left_ || std::exchange(has_sent_stop_, true)) return;
  if (hosts()) deadline_ = core::now() + stop_limit();
  link_->send({.kind = kStop, .step = steps_});
}

void DecoupledDiloco::note(const dist::HubMessage& message) {
  if (message.kind == kStopRequested) stop_requested_ = true;
  if (message.kind == kStopStep) stop_step_ = message.step;
  if (message.kind == kRequest) requests_.push_back(message.number);
}

// After the deadline rank 0 gives up the replicas that it waits for; then the coordinator answers.
dist::HubMessage DecoupledDiloco::receive() {
  const core::SteadyTime since = core::now();
  for (;;) {
    if (stop_requested_ || core::stop_reason() != core::StopReason::kNone) send_stop();
    if (auto message = link_->receive_within(kPollEvery)) return std::move(*message);
    if (!deadline_ || core::now() < std::max(*deadline_, since + kLeastPatience)) continue;
    core::warn(
        "some replicas did not respond in time: their progress since the last synchronization is "
        "lost");
    link_->send({.kind = kGiveUp});
    return link_->receive();
  }
}

dist::HubMessage DecoupledDiloco::await(std::initializer_list<std::int32_t> kinds) {
  for (;;) {
    dist::HubMessage message = receive();
    note(message);
    if (std::ranges::find(kinds, message.kind) != kinds.end()) return message;
  }
}

}  // namespace scaletrain::local_sgd
