#include "lib/local_sgd/diloco_client.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/log.h"
#include "lib/core/process/signals.h"
#include "lib/local_sgd/diloco_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {
namespace {

constexpr std::chrono::milliseconds kLeastPatience{2000};  // an active replica answers within it
constexpr std::chrono::milliseconds kLookEvery{100};       // interval of checks for a stop

// Returns the bytes as a tensor like `like` on the CPU; undefined if their number differs.
at::Tensor tensor_of(const std::vector<std::byte>& bytes, const at::Tensor& like) {
  const at::Tensor result = at::empty(like.sizes(), like.options().device(at::kCPU));
  if (bytes.size() != result.nbytes()) return {};
  if (!bytes.empty()) std::memcpy(result.mutable_data_ptr(), bytes.data(), bytes.size());
  return result;
}

}  // namespace

DilocoClient::DilocoClient(std::int64_t steps, dist::Mesh& mesh, const std::string& host,
                           at::ScalarType type)
    : ranks_of_hub_(hub_ranks(mesh.plan())),
      hub_rank_(hub_rank(mesh.plan(), mesh.rank())),
      roll_(std::make_shared<Membership>(ranks_of_hub_.replicas, steps)),
      given_(std::make_shared<ReceivedTensors>()),
      steps_(steps) {
  std::string address;
  if (mesh.rank() == 0) {
    hub_ = std::make_unique<dist::Hub>(
        ranks_of_hub_.count(),
        std::make_unique<DilocoCoordinator>(ranks_of_hub_, roll_, given_, type), host);
    address = hub_->address(host);
  }
  address = mesh.world().broadcast_text(address, 0, "where the replicas meet");
  link_ = std::make_unique<dist::HubLink>(address, hub_rank_);
  mesh.part_replicas();
}

std::optional<at::Tensor> DilocoClient::mean_of(std::int64_t part, const at::Tensor& values,
                                                std::int64_t steps) {
  const at::NoGradGuard no_grad;
  steps_ = steps;
  link_->send({.kind = kPart,
               .number = static_cast<std::int32_t>(part),
               .step = steps,
               .body = as_bytes(on_host(values))});
  const dist::HubMessage answer = answer_to(kPart, kStopStep);
  if (answer.kind != kPart) return std::nullopt;
  return tensor_of(answer.body, values);
}

bool DilocoClient::meet(std::int64_t steps) {
  steps_ = steps;
  link_->send({.kind = kSynchronize, .step = steps});
  return answer_to(kSynchronize, kStopStep).kind == kSynchronize;
}

bool DilocoClient::stop_is_asked() {
  while (!stop_is_asked_ && !stops_at_) {
    const std::optional<dist::HubMessage> message =
        link_->receive_within(std::chrono::milliseconds(0));
    if (!message) return false;
    stop_is_asked_ = message->kind == kStopRequested;
    if (message->kind == kStopStep) stops_at_ = message->step;
  }
  return true;
}

std::int64_t DilocoClient::agree_on_stop(std::int64_t steps) {
  steps_ = steps;
  if (!stops_at_) {
    say_stop();
    answer_to(kStopStep);
  }
  return *stops_at_;
}

std::int32_t DilocoClient::agree_on_wish(std::int32_t wish) {
  ++round_;
  if (hosts()) {
    link_->send({.kind = kRequest, .number = wish, .step = round_});
    return wish;
  }
  if (ranks_of_hub_.replica(hub_rank_) == 0) return wish;
  link_->send({.kind = kReadRequest, .step = round_});
  return answer_to(kReadRequest).number;
}

void DilocoClient::give(const std::vector<at::Tensor>& own) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own.size(); ++i) {
    link_->send({.kind = kState,
                 .number = static_cast<std::int32_t>(i),
                 .step = round_,
                 .body = as_bytes(on_host(own[i]))});
  }
  link_->send({.kind = kStatesSent, .step = round_});
}

std::vector<std::vector<at::Tensor>> DilocoClient::take(const std::vector<at::Tensor>& own) {
  const std::vector<Given> all = take_given();
  std::vector<std::vector<at::Tensor>> result(all.size());
  for (std::size_t replica = 1; replica < result.size(); ++replica) {
    const Given& given = all[replica];
    std::vector<at::Tensor>& tensors = result[replica];
    for (std::size_t i = 0; i < own.size(); ++i) {
      const auto found = given.find(static_cast<std::int32_t>(i));
      at::Tensor tensor = found == given.end() ? at::Tensor() : tensor_of(found->second, own[i]);
      if (tensor.defined()) tensors.push_back(std::move(tensor));
    }
    if (tensors.size() != own.size()) tensors.clear();
  }
  return result;
}

std::vector<DilocoClient::Given> DilocoClient::take_given() {
  std::vector<Given> all(static_cast<std::size_t>(ranks_of_hub_.replicas));
  link_->send({.kind = kAwaitStates});
  for (;;) {
    dist::HubMessage answer = answer_to(kAwaitStates, kState);
    if (answer.kind == kAwaitStates) break;
    all.at(static_cast<std::size_t>(answer.step))[answer.number] = std::move(answer.body);
  }
  if (!hosts()) return all;
  for (int replica = 1; replica < ranks_of_hub_.replicas; ++replica) {
    all[static_cast<std::size_t>(replica)] = given_->take(ranks_of_hub_.rank(replica, 0));
  }
  return all;
}

void DilocoClient::leave(std::optional<std::chrono::milliseconds> limit) {
  if (std::exchange(has_left_, true)) return;
  link_->send({.kind = kLeave});
  answer_to(kLeave);
  if (!hosts()) return;
  link_->send({.kind = kAwaitAll});
  if (limit) {
    link_->receive_within(*limit);
  } else {
    answer_to(kAwaitAll);
  }
}

// After the deadline it gives up the replicas that rank 0 waits for; then the hub answers.
dist::HubMessage DilocoClient::receive() {
  const core::SteadyTime since = core::now();
  for (;;) {
    if (stop_is_asked_ || core::stop_reason() != core::StopReason::kNone) say_stop();
    if (auto message = link_->receive_within(kLookEvery)) return std::move(*message);
    if (!deadline_ || core::now() < std::max(*deadline_, since + kLeastPatience)) continue;
    core::warn(
        "some replicas were not heard of in time: what they learned since the last exchange is "
        "lost");
    link_->send({.kind = kGiveUp});
    return link_->receive();
  }
}

// `other`: kind of an alternative answer.
dist::HubMessage DilocoClient::answer_to(std::int32_t kind, std::int32_t other) {
  for (;;) {
    dist::HubMessage answer = receive();
    stop_is_asked_ = stop_is_asked_ || answer.kind == kStopRequested;
    if (answer.kind == kStopStep) stops_at_ = answer.step;
    if (answer.kind == kind || answer.kind == other) return answer;
  }
}

void DilocoClient::say_stop() {
  if (has_left_ || std::exchange(has_said_stop_, true)) return;
  if (hosts()) deadline_ = core::now() + stop_limit_;
  link_->send({.kind = kStop, .step = steps_});
}

}  // namespace scaletrain::local_sgd
