#include "lib/parallel/sync/rounds.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/core/log.h"
#include "lib/core/process/signals.h"
#include "lib/parallel/sync/flat_bytes.h"
#include "lib/parallel/sync/hub_words.h"
#include "lib/parallel/sync/round_mean.h"

namespace scaletrain::parallel {
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

Rounds::Rounds(std::int64_t steps, dist::Mesh& mesh, const std::string& host, at::ScalarType type)
    : seats_(seats_of(mesh.plan())),
      seat_(seat_of(mesh.plan(), mesh.rank())),
      roll_(std::make_shared<ReplicaRoll>(seats_.replicas, steps)),
      given_(std::make_shared<GivenTensors>()),
      steps_(steps) {
  std::string address;
  if (mesh.rank() == 0) {
    hub_ = std::make_unique<dist::Hub>(
        seats_.count(), std::make_unique<RoundMean>(seats_, roll_, given_, type), host);
    address = hub_->address(host);
  }
  address = mesh.world().broadcast_text(address, 0, "where the replicas meet");
  link_ = std::make_unique<dist::HubLink>(address, seat_);
  mesh.part_replicas();
}

std::optional<at::Tensor> Rounds::mean_of(std::int64_t part, const at::Tensor& values,
                                          std::int64_t steps) {
  const at::NoGradGuard no_grad;
  steps_ = steps;
  link_->send({.kind = kPart,
               .number = static_cast<std::int32_t>(part),
               .step = steps,
               .body = as_bytes(on_host(values))});
  const dist::HubMessage answer = answer_to(kPart, kStopAt);
  if (answer.kind != kPart) return std::nullopt;
  return tensor_of(answer.body, values);
}

bool Rounds::meet(std::int64_t steps) {
  steps_ = steps;
  link_->send({.kind = kMeet, .step = steps});
  return answer_to(kMeet, kStopAt).kind == kMeet;
}

bool Rounds::stop_is_asked() {
  while (!stop_is_asked_ && !stops_at_) {
    const std::optional<dist::HubMessage> message =
        link_->receive_within(std::chrono::milliseconds(0));
    if (!message) return false;
    stop_is_asked_ = message->kind == kAskStop;
    if (message->kind == kStopAt) stops_at_ = message->step;
  }
  return true;
}

std::int64_t Rounds::agree_on_stop(std::int64_t steps) {
  steps_ = steps;
  if (!stops_at_) {
    say_stop();
    answer_to(kStopAt);
  }
  return *stops_at_;
}

std::int32_t Rounds::agree_on_wish(std::int32_t wish) {
  ++round_;
  if (hosts()) {
    link_->send({.kind = kWish, .number = wish, .step = round_});
    return wish;
  }
  if (seats_.replica(seat_) == 0) return wish;
  link_->send({.kind = kAsk, .step = round_});
  return answer_to(kAsk).number;
}

void Rounds::give(const std::vector<at::Tensor>& own) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < own.size(); ++i) {
    link_->send({.kind = kGive,
                 .number = static_cast<std::int32_t>(i),
                 .step = round_,
                 .body = as_bytes(on_host(own[i]))});
  }
  link_->send({.kind = kGiven, .step = round_});
}

std::vector<std::vector<at::Tensor>> Rounds::take(const std::vector<at::Tensor>& own) {
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

std::vector<Rounds::Given> Rounds::take_given() {
  std::vector<Given> all(static_cast<std::size_t>(seats_.replicas));
  link_->send({.kind = kAwaitGiven});
  for (;;) {
    dist::HubMessage answer = answer_to(kAwaitGiven, kGive);
    if (answer.kind == kAwaitGiven) break;
    all.at(static_cast<std::size_t>(answer.step))[answer.number] = std::move(answer.body);
  }
  if (!hosts()) return all;
  for (int replica = 1; replica < seats_.replicas; ++replica) {
    all[static_cast<std::size_t>(replica)] = given_->take(seats_.rank(replica, 0));
  }
  return all;
}

void Rounds::leave(std::optional<std::chrono::milliseconds> limit) {
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
dist::HubMessage Rounds::receive() {
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
dist::HubMessage Rounds::answer_to(std::int32_t kind, std::int32_t other) {
  for (;;) {
    dist::HubMessage answer = receive();
    stop_is_asked_ = stop_is_asked_ || answer.kind == kAskStop;
    if (answer.kind == kStopAt) stops_at_ = answer.step;
    if (answer.kind == kind || answer.kind == other) return answer;
  }
}

void Rounds::say_stop() {
  if (has_left_ || std::exchange(has_said_stop_, true)) return;
  if (hosts()) deadline_ = core::now() + stop_limit_;
  link_->send({.kind = kStop, .step = steps_});
}

}  // namespace scaletrain::parallel
