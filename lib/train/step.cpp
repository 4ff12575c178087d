#include "lib/train/step.h"

#include <ATen/Context.h>
#include <ATen/ops/_foreach_copy.h>

#include <cmath>
#include <limits>

#include "lib/core/philox.h"
#include "lib/optim/clip.h"
#include "lib/train/vote.h"

namespace scaletrain::train {
namespace {

// Dropout's masks depend on (seed, step, micro-step, rank) and on nothing before, so that no
// generator state has to be saved.
void reseed(at::Device device, std::uint64_t seed, std::int64_t step, std::int64_t stream) {
  core::Philox draw(seed, core::DrawPurpose::kDropout, static_cast<std::uint64_t>(step),
                    static_cast<std::uint64_t>(stream));
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(draw.next_u64());
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> result;
  result.reserve(parameters.size());
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) result.push_back(parameter.grad());
  }
  return result;
}

}  // namespace

StepRunner::StepRunner(Parts& parts, const recipe::Recipe& recipe)
    : parts_(parts), seed_(recipe.seed), fault_(read_fault()) {
  if (recipe.clip) max_norm_ = recipe.clip->norm;
  for (const at::Tensor& buffer : parts.model->buffers()) {
    if (!buffer.is_floating_point()) continue;
    statistics_.push_back(buffer);
    kept_.push_back(buffer.clone());
  }
}

at::Tensor StepRunner::forward(std::int64_t step, std::int64_t micro_step,
                               const data::ImageBatch& images, bool make_nan) {
  const dist::Group& group = *parts_.group;
  input::DeviceBatch batch = parts_.input->prepare(images);
  if (parts_.mixer) parts_.mixer->mix(batch, images.epoch, images.position);
  if (make_nan) batch.images.fill_(std::numeric_limits<double>::quiet_NaN());
  reseed(group.device(), seed_, step, micro_step * group.world_size() + group.rank());
  return parts_.precision->forward(
      [&] { return parts_.loss->sum(parts_.model->forward(batch.images), batch.targets); });
}

StepResult StepRunner::run(std::int64_t step, double lr, double trained_s) {
  dist::Group& group = *parts_.group;
  // Backward starts from the sum over the micro-batch. Divided by the global batch, and multiplied
  // by the ranks to undo the Reducer's mean, the gradients are those of the global mean.
  const double weight = group.world_size() / static_cast<double>(parts_.batch.global);
  core::Beat& beat = parts_.beat;
  beat.begin_step(step + 1);
  const bool make_nan = commit_fault(fault_, step + 1, group.rank());
  StepResult result;
  Vote own{.stop = core::stop_reason(), .trained_s = trained_s};
  std::optional<VoteExchange> exchange;

  parts_.parallel->zero_grad();
  if (!kept_.empty()) at::_foreach_copy_(kept_, statistics_);
  for (std::int64_t micro_step = 0; micro_step < parts_.batch.accumulate; ++micro_step) {
    const bool last = micro_step + 1 == parts_.batch.accumulate;
    beat.enter(core::Phase::kData);
    const data::ImageBatch images = parts_.train_loader->next();
    beat.enter(core::Phase::kCompute);
    parts_.parallel->begin_micro_step(last);
    const at::Tensor loss = forward(step, micro_step, images, make_nan);

    const auto loss_sum = loss.item<double>();
    own.loss_sum += loss_sum;
    own.targets += static_cast<double>(images.count);
    own.finite = own.finite && std::isfinite(loss_sum);
    own.digest += images.digest;
    own.skipped += static_cast<std::int64_t>(images.skipped.size());
    result.data_s += images.wait_s;
    result.stages += images.stages;
    result.bad_samples.insert(result.bad_samples.end(), images.skipped.begin(),
                              images.skipped.end());
    if (last) exchange.emplace(group, own);

    const at::Tensor root = parts_.precision->scale(loss * weight);
    parts_.parallel->prepare_backward(root);
    backward(root);
  }

  beat.enter(core::Phase::kCollective);
  const Vote all = exchange->result();
  beat.enter(core::Phase::kCompute);
  result.loss = all.loss_sum / all.targets;
  result.stop = all.stop;
  result.digest = all.digest;
  result.skipped = all.skipped;
  result.trained_s = all.trained_s;
  result.finite = update(lr, result.grad_norm, all.finite);
  return result;
}

void StepRunner::backward(const at::Tensor& root) {
  try {
    root.backward();
  } catch (const std::exception&) {
    dist::rethrow_as_stopped(parts_.group->rank(), "the gradients were");
  }
}

bool StepRunner::update(double lr, double& norm, bool finite) {
  const std::vector<at::Tensor> gradients = gradients_of(parts_.parameters);
  parts_.precision->unscale(gradients);
  const at::Tensor norm_tensor = optim::grad_norm(gradients);
  norm = norm_tensor.item<double>();
  finite = finite && std::isfinite(norm);
  if (finite) {
    if (max_norm_) optim::clip_grad_norm(gradients, norm_tensor, *max_norm_);
    parts_.optimizer->step(lr);
  } else if (!kept_.empty()) {
    at::_foreach_copy_(statistics_, kept_);  // forward may have put into them what is not finite
  }
  parts_.precision->update(finite);
  return finite;
}

}  // namespace scaletrain::train
