#include "lib/train/reporter.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "lib/core/disk.h"
#include "lib/core/version.h"
#include "lib/dist/device.h"
#include "lib/observe/environment.h"
#include "lib/observe/terminal.h"
#include "lib/recipe/load.h"

namespace scaletrain::train {
namespace {

constexpr int kSummaryWaitMs = 2000;  // for a console that nobody reads

}  // namespace

Reporter::Reporter(const recipe::Recipe& recipe, const core::WorkerEnv& env, Parts& parts,
                   const std::optional<std::filesystem::path>& resume)
    : recipe_(recipe),
      attempt_(env.attempt),
      parts_(parts),
      console_fd_(env.console_fd.value_or(STDERR_FILENO)),
      checkpoint_(resume.value_or("").string()) {
  if (env.rank != 0) return;
  const std::filesystem::path run = recipe.output;
  observe::EnvironmentFacts facts;
  facts.versions = {{"scaletrain", core::version()}, {"torch", TORCH_VERSION}};
  facts.devices = {dist::device_name(parts.group->device())};
  facts.world_size = env.world_size;
  facts.command = observe::command_line(::getppid());
  core::system_disk().make_folders(run);
  core::write_durably(core::system_disk(), run / "environment.json",
                      observe::environment_json(facts));
  // Of a new run the launcher has written it.
  if (resume) {
    core::write_durably(core::system_disk(), run / "recipe.json", recipe::to_json(recipe));
  }
  metrics_ = std::make_unique<observe::MetricsWriter>(run / "metrics.jsonl");
  progress_ = std::make_unique<observe::Progress>(
      console_fd_, observe::ProgressGoal{.total_steps = parts.total_steps,
                                         .steps_per_epoch = parts.train_loader->steps_per_epoch()});
}

Reporter::~Reporter() = default;

void Reporter::step(const StepResult& result, double lr, double seconds, bool first, bool due) {
  const checkpoint::TrainState& state = parts_.state;
  ++window_steps_;
  ++own_steps_;
  window_s_ += seconds;
  own_s_ += seconds;
  window_data_s_ += result.data_s;
  window_stages_ += result.stages;
  if (first || due) {
    const auto steps = static_cast<double>(window_steps_);
    const double samples =
        steps * static_cast<double>(parts_.batch.per_device * parts_.batch.accumulate);
    at::Tensor slowest = at::empty({6}, at::kDouble);
    auto* const values = slowest.mutable_data_ptr<double>();
    values[0] = window_data_s_ / steps;
    values[1] = (window_s_ - window_data_s_) / steps;
    values[2] = static_cast<double>(dist::peak_memory_bytes(parts_.group->device()));
    values[3] = window_stages_.read_s / samples;
    values[4] = window_stages_.decode_s / samples;
    values[5] = window_stages_.augment_s / samples;
    slowest = slowest.to(parts_.group->device());
    parts_.group->all_reduce_max(slowest, "slowest rank").wait();
    if (speaks()) {
      const at::Tensor host = slowest.cpu();
      const auto* const worst = host.const_data_ptr<double>();
      const observe::TrainRecord record{
          .attempt = attempt_,
          .step = state.step,
          .epoch = last_epoch(),
          .samples = state.samples,
          .loss = result.loss,
          .lr = lr,
          .grad_norm = result.grad_norm,
          .samples_per_s = steps * static_cast<double>(parts_.batch.global) / window_s_,
          .data_time = worst[0],
          .compute_time = worst[1],
          .read_time = worst[3],
          .decode_time = worst[4],
          .augment_time = worst[5],
          .memory_bytes = static_cast<std::int64_t>(worst[2]),
          .order_digest = state.order_digest,
          .skipped_samples = state.skipped_samples};
      metrics_->write(record);
      progress_->train(record);
    }
    window_steps_ = 0;
    window_s_ = window_data_s_ = 0;
    window_stages_ = {};
  }
  if (speaks()) progress_->tick(state.step, result.loss, lr);
}

std::int64_t Reporter::last_epoch() const {
  return parts_.state.step_in_epoch > 0 ? parts_.state.epoch : parts_.state.epoch - 1;
}

void Reporter::eval(const std::string& split, const EvalResult& result) {
  if (!speaks()) return;
  const observe::EvalRecord record{.attempt = attempt_,
                                   .split = split,
                                   .step = parts_.state.step,
                                   .epoch = last_epoch(),
                                   .loss = result.loss,
                                   .top1 = result.top1,
                                   .top5 = result.top5,
                                   .count = result.count,
                                   .skipped = result.skipped};
  metrics_->write(record);
  progress_->eval(record);
  if (split == "test") {
    test_ =
        observe::RunSummary::Test{.top1 = result.top1, .top5 = result.top5, .count = result.count};
  }
}

void Reporter::saved(const std::filesystem::path& checkpoint, double seconds) {
  checkpoint_ = checkpoint.string();
  if (speaks()) {
    progress_->note(fmt::format("saved {} in {:.2f} s", checkpoint_, seconds));
  }
}

void Reporter::skipped(const StepResult& result) {
  if (!speaks()) return;
  progress_->note(
      fmt::format("warning: step {} was left out on all ranks: loss {}, gradient norm {}",
                  parts_.state.step, result.loss, result.grad_norm));
}

void Reporter::straggler(const observe::Straggler& slow) {
  if (!speaks()) return;
  progress_->note(fmt::format(
      "warning: rank {} is steadily slower than the others, by {}: {:.4f} s of its own a step, "
      "the median rank's is {:.4f} s",
      slow.rank, slow.phase, slow.seconds, slow.median));
  metrics_->write(
      observe::StragglerRecord{.attempt = attempt_, .step = parts_.state.step, .slow = slow});
}

void Reporter::finished() {
  if (!speaks()) return;
  nlohmann::json file{{"step", parts_.state.step}, {"epoch", parts_.state.epoch}};
  if (test_) file["test_top1"] = test_->top1;
  core::write_durably(core::system_disk(), std::filesystem::path(recipe_.output) / "finished.json",
                      file.dump(2) + "\n");
}

void Reporter::summary(const std::string& stopped) {
  if (!speaks()) return;
  progress_.reset();  // ends the bar's line
  const checkpoint::TrainState& state = parts_.state;
  observe::RunSummary summary{
      .name = recipe_.name,
      .stopped = stopped,
      .step = state.step,
      .trained_s = state.trained_s,
      .samples_per_s =
          own_s_ > 0 ? static_cast<double>(own_steps_ * parts_.batch.global) / own_s_ : 0,
      .skipped_steps = state.skipped_steps,
      .skipped_samples = state.skipped_samples,
      .best = std::nullopt,
      .test = test_,
      .checkpoint = checkpoint_,
      .run = recipe_.output};
  if (state.best_step >= 0) {
    summary.best = observe::RunSummary::Best{.top1 = state.best_metric, .step = state.best_step};
  }
  observe::offer(console_fd_, observe::summary_text(summary), kSummaryWaitMs);
}

}  // namespace scaletrain::train
