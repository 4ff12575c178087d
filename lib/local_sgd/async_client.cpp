#include "lib/local_sgd/async_client.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "lib/local_sgd/async_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/hub_ranks.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {

AsyncClient::AsyncClient(const recipe::Sync& sync, std::vector<at::Tensor> parts,
                         std::int64_t steps, dist::Mesh& mesh, const std::string& host)
    : bases_(std::move(parts)) {
  const HubRanks hub = hub_ranks(mesh.plan());
  const int own_rank = hub_rank(mesh.plan(), mesh.rank());
  roll_ = std::make_shared<Membership>(hub.replicas, steps);
  for (at::Tensor& base : bases_) base = on_host(base);
  std::string address;
  if (mesh.rank() == 0) {
    hub_ = std::make_unique<dist::Hub>(
        hub.count(), std::make_unique<AsyncCoordinator>(hub, bases_, sync.staleness, roll_), host);
    address = hub_->address(host);
  }
  address = mesh.world().broadcast_text(address, 0, "where the replicas meet");
  link_ = std::make_unique<dist::HubLink>(address, own_rank);
  if (hub.replica(own_rank) == 0 && own_rank != 0) give_bases();
  mesh.part_replicas();
}

// The answer to fetch() proves that the hub has received them, before any training.
void AsyncClient::give_bases() {
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    link_->send({.kind = kInitialPart,
                 .number = static_cast<std::int32_t>(i),
                 .body = as_bytes(bases_[i])});
  }
  if (!bases_.empty()) fetch(0);
}

std::vector<at::Tensor> AsyncClient::exchange(const std::map<std::int64_t, at::Tensor>& parts,
                                              std::int64_t steps) {
  const at::NoGradGuard no_grad;
  for (const auto& [number, weights] : parts) {
    link_->send({.kind = kPart,
                 .number = static_cast<std::int32_t>(number),
                 .step = steps,
                 .body = as_bytes(on_host(weights) - bases_[static_cast<std::size_t>(number)])});
  }
  link_->send({.kind = kSynchronize, .step = steps});
  std::vector<at::Tensor> result;
  for (const auto& [number, weights] : parts) {
    const dist::HubMessage answer = answer_to(kPart);
    bases_[static_cast<std::size_t>(number)] = as_floats(answer.body).clone();
    result.push_back(bases_[static_cast<std::size_t>(number)]);
  }
  return result;
}

void AsyncClient::leave(bool is_over) {
  link_->send({.kind = kLeave, .number = is_over ? kFinished : 0});
  answer_to(kLeave);
}

void AsyncClient::stop_all() { link_->send({.kind = kStop}); }

bool AsyncClient::await_all(std::optional<std::chrono::milliseconds> limit) {
  link_->send({.kind = kAwaitAll});
  if (limit) return link_->receive_within(*limit).has_value();
  answer_to(kAwaitAll);
  return true;
}

// The hub's answer to fetch() proves that it has handled kGiveUp.
void AsyncClient::close() {
  link_->send({.kind = kGiveUp});
  if (!bases_.empty()) fetch(0);
}

at::Tensor AsyncClient::fetch(std::int64_t part) {
  link_->send({.kind = kFetch, .number = static_cast<std::int32_t>(part)});
  return as_floats(answer_to(kFetch).body).clone();
}

// Skips late answers to requests that this replica no longer waits for.
dist::HubMessage AsyncClient::answer_to(std::int32_t kind) {
  for (;;) {
    dist::HubMessage answer = link_->receive();
    shall_stop_ = shall_stop_ || (answer.number & kStopFlag) != 0;
    if (answer.kind == kind) return answer;
  }
}

}  // namespace scaletrain::local_sgd
