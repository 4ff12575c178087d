#include "lib/local_sgd/diloco_client.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "lib/core/log.h"
#include "lib/core/process/signals.h"
#include "lib/local_sgd/diloco_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {
namespace {

constexpr std::chrono::milliseconds kLeastPatience{2000};  // an active replica answers within it
constexpr std::chrono::milliseconds kPollEvery{100};       // interval of checks for a stop

}  // namespace

DilocoClient::DilocoClient(std::int64_t steps, dist::Mesh& mesh, const std::string& host,
                           at::ScalarType type)
    : hub_(steps, mesh, host,
           [&](const std::shared_ptr<Membership>& membership) {
             return std::make_unique<DilocoCoordinator>(hub_ranks(mesh.plan()), membership, type);
           }),
      steps_(steps) {
  mesh.part_replicas();
}

std::optional<at::Tensor> DilocoClient::mean_of(std::int64_t part, const at::Tensor& values,
                                                std::int64_t steps) {
  const at::NoGradGuard no_grad;
  steps_ = steps;
  hub_.link->send({.kind = kPart,
                   .number = static_cast<std::int32_t>(part),
                   .step = steps,
                   .body = as_bytes(on_host(values))});
  const dist::HubMessage answer = answer_to(kPart, kStopStep);
  if (answer.kind != kPart) return std::nullopt;
  return as_tensor_like(answer.body, values);
}

bool DilocoClient::synchronize(std::int64_t steps) {
  steps_ = steps;
  hub_.link->send({.kind = kSynchronize, .step = steps});
  return answer_to(kSynchronize, kStopStep).kind == kSynchronize;
}

bool DilocoClient::stop_requested() {
  while (!stop_requested_ && !stop_step_) {
    const std::optional<dist::HubMessage> message =
        hub_.link->receive_within(std::chrono::milliseconds(0));
    if (!message) return false;
    stop_requested_ = message->kind == kStopRequested;
    if (message->kind == kStopStep) stop_step_ = message->step;
  }
  return true;
}

std::int64_t DilocoClient::agree_on_stop(std::int64_t steps) {
  steps_ = steps;
  if (!stop_step_) {
    send_stop();
    answer_to(kStopStep);
  }
  return *stop_step_;
}

std::int32_t DilocoClient::agree_on_request(std::int32_t request) {
  ++requests_;
  if (hub_.hosts()) hub_.link->send({.kind = kRequest, .number = request, .step = requests_});
  if (hub_.replica() == 0) return request;
  hub_.link->send({.kind = kReadRequest, .step = requests_});
  return answer_to(kReadRequest).number;
}

void DilocoClient::send_states(const std::vector<at::Tensor>& own) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own.size(); ++i) {
    hub_.link->send({.kind = kState,
                     .number = static_cast<std::int32_t>(i),
                     .step = requests_,
                     .body = as_bytes(on_host(own[i]))});
  }
  hub_.link->send({.kind = kStatesSent, .step = requests_});
}

std::vector<std::vector<at::Tensor>> DilocoClient::receive_states(
    const std::vector<at::Tensor>& own) {
  const at::NoGradGuard no_grad;
  using States = std::map<std::int32_t, at::Tensor>;  // keyed by the tensor's number
  std::vector<States> all(static_cast<std::size_t>(hub_.ranks.replicas));
  hub_.link->send({.kind = kAwaitStates});
  for (;;) {
    const dist::HubMessage answer = answer_to(kAwaitStates, kState);
    if (answer.kind == kAwaitStates) break;
    const at::Tensor tensor =
        as_tensor_like(answer.body, own.at(static_cast<std::size_t>(answer.number)));
    if (tensor.defined()) {
      all.at(static_cast<std::size_t>(answer.step)).emplace(answer.number, tensor);
    }
  }
  std::vector<std::vector<at::Tensor>> result(all.size());
  for (std::size_t replica = 0; replica < all.size(); ++replica) {
    if (all[replica].size() != own.size()) continue;
    for (auto& [number, tensor] : all[replica]) result[replica].push_back(std::move(tensor));
  }
  return result;
}

void DilocoClient::leave(std::optional<std::chrono::milliseconds> limit) {
  if (std::exchange(has_left_, true)) return;
  hub_.link->send({.kind = kLeave});
  answer_to(kLeave);
  if (!hub_.hosts()) return;
  hub_.link->send({.kind = kAwaitAll});
  if (limit) {
    hub_.link->receive_within(*limit);
  } else {
    answer_to(kAwaitAll);
  }
}

// After the deadline it drops the replicas that rank 0 waits for; then the coordinator answers.
dist::HubMessage DilocoClient::receive() {
  const core::SteadyTime since = core::now();
  for (;;) {
    if (stop_requested_ || core::stop_reason() != core::StopReason::kNone) send_stop();
    if (auto message = hub_.link->receive_within(kPollEvery)) return std::move(*message);
    if (!deadline_ || core::now() < std::max(*deadline_, since + kLeastPatience)) continue;
    core::warn(
        "some replicas were not heard of in time: what they learned since the last exchange is "
        "lost");
    hub_.link->send({.kind = kGiveUp});
    return hub_.link->receive();
  }
}

// `other`: kind of an alternative answer.
dist::HubMessage DilocoClient::answer_to(std::int32_t kind, std::int32_t other) {
  for (;;) {
    dist::HubMessage answer = receive();
    stop_requested_ = stop_requested_ || answer.kind == kStopRequested;
    if (answer.kind == kStopStep) stop_step_ = answer.step;
    if (answer.kind == kind || answer.kind == other) return answer;
  }
}

void DilocoClient::send_stop() {
  if (has_left_ || std::exchange(has_sent_stop_, true)) return;
  if (hub_.hosts()) deadline_ = core::now() + stop_limit_;
  hub_.link->send({.kind = kStop, .step = steps_});
}

}  // namespace scaletrain::local_sgd
