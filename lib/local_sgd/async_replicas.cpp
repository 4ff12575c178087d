#include "lib/local_sgd/async_replicas.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "lib/core/log.h"

namespace scaletrain::local_sgd {

// After a resume all replicas have the optimizer state of rank 0's replica.
AsyncReplicas::AsyncReplicas(LocalSgdOptions options,
                             const std::vector<units::NamedParameter>& parameters,
                             const Fragments& fragments, dist::Mesh& mesh)
    : WeightSync(std::move(options), parameters, fragments, mesh) {
  traits_.local_optimizer = false;
  traits_.reported_replica = 0;
  traits_.leads = mesh.replica() == 0;
  traits_.notice =
      "async: replicas exchange weights when each of them can: neither the bits nor the order of "
      "samples are those of another run; loss and gradients shown are replica 0's";
}

void AsyncReplicas::decouple(std::int64_t steps, const std::function<std::string()>& host,
                             const std::function<void()>& before) {
  if (before) before();
  steps_ = steps;
  std::vector<at::Tensor> weights;
  weights.reserve(parts_.size());
  for (const Part& part : parts_) weights.push_back(weights_of(part));
  client_.emplace(options_.sync.staleness, std::move(weights), steps, mesh_, host());
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
  std::map<std::int64_t, at::Tensor> weights;
  for (const Part* const part : due) {
    const auto [own, is_new] = weights.emplace(part->number, weights_of(*part));
    communicated_bytes_ += static_cast<std::int64_t>(own->second.nbytes());
  }
  const std::vector<at::Tensor> means = client_->synchronize(weights, steps_);
  for (std::size_t i = 0; i < due.size(); ++i) continue_from(*due[i], means[i]);
}

void AsyncReplicas::stop() {
  options_.beat.enter(core::Phase::kWaiting);
  if (steps_ == options_.total_steps) return;  // it has left
  if (client_->hosts()) client_->request_stop();
  synchronize(differing_parts());
  options_.beat.enter(core::Phase::kWaiting);
  leave(options_.stop_limit());
}

// Rank 0's replica continues with the final global weights.
void AsyncReplicas::leave(std::optional<std::chrono::milliseconds> limit) {
  client_->leave(steps_ == options_.total_steps);
  if (mesh_.replica() != 0) return;
  if (client_->hosts() && !client_->await_all(limit)) {
    core::warn("some replicas were not heard of within {:g} s: what they learned last is not there",
               std::chrono::duration<double>(*limit).count());
  }
  if (client_->hosts()) client_->close();
  mesh_.world().barrier("rank 0 has heard of all replicas");
  for (const Part& part : parts_) set_weights(part, client_->fetch(part.number));
}

}  // namespace scaletrain::local_sgd
