#include "lib/local_sgd/async_client.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "lib/local_sgd/async_coordinator.h"
#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {
namespace {

std::vector<at::Tensor> all_on_host(std::vector<at::Tensor> parts) {
  for (at::Tensor& part : parts) part = on_host(part);
  return parts;
}

}  // namespace

AsyncClient::AsyncClient(std::int64_t staleness, std::vector<at::Tensor> parts, std::int64_t steps,
                         dist::Mesh& mesh, const std::string& host)
    : bases_(all_on_host(std::move(parts))),
      hub_(steps, mesh, host, [&](const std::shared_ptr<Membership>& membership) {
        return std::make_unique<AsyncCoordinator>(hub_ranks(mesh.plan()), bases_, staleness,
                                                  membership);
      }) {
  if (hub_.replica() == 0 && !hosts()) send_initial_parts();
  mesh.part_replicas();
}

// The answer to fetch() proves that the coordinator has received them, before any training.
void AsyncClient::send_initial_parts() {
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    hub_.link->send({.kind = kInitialPart,
                     .number = static_cast<std::int32_t>(i),
                     .body = as_bytes(bases_[i])});
  }
  if (!bases_.empty()) fetch(0);
}

std::vector<at::Tensor> AsyncClient::synchronize(const std::map<std::int64_t, at::Tensor>& parts,
                                                 std::int64_t steps) {
  const at::NoGradGuard no_grad;
  for (const auto& [number, weights] : parts) {
    hub_.link->send(
        {.kind = kPart,
         .number = static_cast<std::int32_t>(number),
         .step = steps,
         .body = as_bytes(on_host(weights) - bases_[static_cast<std::size_t>(number)])});
  }
  hub_.link->send({.kind = kSynchronize, .step = steps});
  std::vector<at::Tensor> result;
  for (const auto& [number, weights] : parts) {
    result.push_back(as_floats(answer_to(kPart).body).clone());
    bases_[static_cast<std::size_t>(number)] = result.back();
  }
  return result;
}

void AsyncClient::leave(bool is_over) {
  hub_.link->send({.kind = kLeave, .number = is_over ? kFinished : 0});
  answer_to(kLeave);
}

void AsyncClient::request_stop() { hub_.link->send({.kind = kStop}); }

bool AsyncClient::await_all(std::optional<std::chrono::milliseconds> limit) {
  hub_.link->send({.kind = kAwaitAll});
  if (limit) return hub_.link->receive_within(*limit).has_value();
  answer_to(kAwaitAll);
  return true;
}

// The answer to fetch() proves that the coordinator has handled kGiveUp.
void AsyncClient::close() {
  hub_.link->send({.kind = kGiveUp});
  if (!bases_.empty()) fetch(0);
}

at::Tensor AsyncClient::fetch(std::int64_t part) {
  hub_.link->send({.kind = kFetch, .number = static_cast<std::int32_t>(part)});
  return as_floats(answer_to(kFetch).body).clone();
}

// Skips late answers to requests that this replica no longer waits for.
dist::HubMessage AsyncClient::answer_to(std::int32_t kind) {
  for (;;) {
    dist::HubMessage answer = hub_.link->receive();
    stop_requested_ = stop_requested_ || (answer.number & kStopFlag) != 0;
    if (answer.kind == kind) return answer;
  }
}

}  // namespace scaletrain::local_sgd
