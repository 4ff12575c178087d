#include "lib/local_sgd/decoupled_diloco.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "lib/dist/any_rank.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace scaletrain::local_sgd {
namespace {

constexpr double kGraceForSteps = 0.2;  // share of the grace period for steps to the furthest one

}  // namespace

DecoupledDiloco::DecoupledDiloco(LocalSgdOptions options,
                                 const std::vector<units::NamedParameter>& parameters,
                                 const Fragments& fragments, dist::Mesh& mesh)
    : WeightSync(std::move(options), parameters, fragments, mesh) {
  traits_.local_loss_scale = true;  // no collective spans the replicas
  traits_.reported_replica = 0;
  traits_.leads = mesh.replica() == 0;
}

void DecoupledDiloco::decouple(std::int64_t steps, const std::function<std::string()>& host,
                               const std::function<void()>& before) {
  if (before) before();
  steps_ = steps;
  client_.emplace(steps, mesh_, host(), options_.rounded_to.value_or(at::kFloat));
  client_->set_stop_limit(options_.stop_limit());
}

bool DecoupledDiloco::knows_stop() { return client_->stop_requested() || client_->has_sent_stop(); }

// One rank of a replica may learn of a stop before another: the ranks follow a stop that they have
// agreed on, or that has ended a synchronization of all of them.
bool DecoupledDiloco::before_step(core::StopReason& stop) {
  const bool is_one_rank = mesh_.world().world_size() == 1;
  const bool is_requested =
      is_one_rank ? knows_stop() : any_rank_knows_stop_ || client_->stop_step().has_value();
  if (stop == core::StopReason::kNone && is_requested) stop = core::StopReason::kTerminate;
  if (stop == core::StopReason::kNone) return true;
  if (!stopping_since_) stopping_since_ = core::now();
  options_.beat.enter(core::Phase::kWaiting);
  const std::int64_t furthest = client_->agree_on_stop(steps_);
  const bool is_late = core::seconds_since(*stopping_since_) > kGraceForSteps * options_.grace_s;
  return !dist::any_rank(mesh_.world(), is_late || steps_ >= furthest, "whether to train on");
}

void DecoupledDiloco::after_step(std::int64_t step) {
  if (client_->stop_step()) return count_step(step);  // the next synchronization is the stop's
  WeightSync::after_step(step);
}

bool DecoupledDiloco::is_synchronized() const {
  return !client_->stop_step() && WeightSync::is_synchronized();
}

// One part at a time, so that the coordinator holds one part of each replica.
void DecoupledDiloco::synchronize(const Parts& due) {
  const at::NoGradGuard no_grad;
  const Waiting waiting(options_.beat);
  for (Part* const part : due) {
    const at::Tensor own = contribution(*part);
    std::optional<at::Tensor> mean = client_->mean_of(part->number, own, steps_);
    if (!mean) return;
    communicated_bytes_ += static_cast<std::int64_t>(own.nbytes());
    continue_from(*part, std::move(*mean));
  }
  client_->synchronize(steps_);
}

void DecoupledDiloco::share(StateRequest request) {
  options_.beat.enter(core::Phase::kWaiting);
  states_ = {};
  request = static_cast<StateRequest>(client_->agree_on_request(static_cast<int>(request)));
  if (request != StateRequest::kNothing) share_states(request);
  if (request == StateRequest::kSave) saved_step_ = steps_;
  if (mesh_.world().world_size() > 1) {
    any_rank_knows_stop_ = dist::any_rank(mesh_.world(), knows_stop(), "a stop that is requested");
  }
}

void DecoupledDiloco::share_states(StateRequest request) {
  const at::NoGradGuard no_grad;
  std::vector<std::string> names;
  std::vector<at::Tensor> own;
  for (auto& [name, tensor] : options_.states(request)) {
    names.push_back(name);
    own.push_back(tensor);
  }
  if (!traits_.leads) return client_->send_states(own);
  std::vector<std::vector<at::Tensor>> received = client_->receive_states(own);
  for (std::size_t replica = 0; replica < received.size(); ++replica) {
    const bool is_present = replica == 0 || !received[replica].empty();
    if (is_present) states_.present.push_back(static_cast<std::int64_t>(replica));
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    const at::Tensor first = on_host(own[i]);
    std::vector<at::Tensor> rows;
    for (std::vector<at::Tensor>& one : received) {
      rows.push_back(one.empty() ? first : std::exchange(one[i], {}));
    }
    states_.tensors.emplace(names[i], at::stack(rows));
  }
}

// Replicas that did not agree on a stop are all at the end, where they have synchronized and
// shared. A replica that did not reach the agreed step synchronizes all parts, as the furthest
// replica does.
void DecoupledDiloco::stop() {
  options_.beat.enter(core::Phase::kWaiting);
  if (const std::optional<std::int64_t> step = client_->stop_step()) {
    const bool is_behind = steps_ < *step;
    Parts due;
    for (Part& part : parts_) {
      if (part.differs || is_behind) due.push_back(&part);
    }
    synchronize(due);
    if (saved_step_ != options_.total_steps) share(StateRequest::kSave);
  }
  options_.beat.enter(core::Phase::kWaiting);
  client_->leave(options_.stop_limit());
}

void DecoupledDiloco::finish() {
  options_.beat.enter(core::Phase::kWaiting);
  client_->leave(std::nullopt);
}

}  // namespace scaletrain::local_sgd
