#include "lib/train/loop/reporter.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "lib/core/disk/disk.h"
#include "lib/core/disk/temporary_name.h"
#include "lib/core/log.h"
#include "lib/core/process/cores.h"
#include "lib/core/process/time_ledger.h"
#include "lib/core/text/shell_word.h"
#include "lib/core/version.h"
#include "lib/data/loader/image_sizes.h"
#include "lib/data/loader/threads.h"
#include "lib/dist/device.h"
#include "lib/dist/send.h"
#include "lib/observe/environment.h"
#include "lib/observe/sync_logs.h"
#include "lib/observe/terminal.h"
#include "lib/recipe/load.h"
#include "lib/train/loop/start_facts.h"
#include "lib/train/rules/early_stopping.h"
#include "lib/train/rules/ledger_of_ranks.h"

namespace scaletrain::train {
namespace {

constexpr int kSummaryWaitMs = 2000;  // for a console that nobody reads
constexpr int kStartWaitMs = 100;     // training does not wait long for it

// Values of a record that are maxima over the ranks.
enum Worst : std::size_t { kData, kCompute, kMemory, kRead, kDecode, kAugment, kWorst };

// Returns the model's statistics by name.
std::vector<std::pair<std::string, double>> named(const Run& run,
                                                  const std::vector<double>& statistics) {
  std::vector<std::pair<std::string, double>> result;
  if (statistics.empty()) return result;
  const std::vector<std::string> names = run.learner.model->statistics();
  for (std::size_t i = 0; i < names.size(); ++i) {
    result.emplace_back(names[i], statistics.at(i));
  }
  return result;
}

// Returns the epoch of the last step before `state`.
std::int64_t last_epoch(const format::TrainState& state) {
  return state.step_in_epoch > 0 ? state.epoch : state.epoch - 1;
}

}  // namespace

Reporter::Reporter(Run& run, const core::WorkerEnv& env,
                   const std::optional<std::filesystem::path>& resume, bool late)
    : run_(run),
      sizes_(run.batch.sizes()),
      attempt_(env.attempt),
      flops_(run),
      lines_(*run.group, late),
      console_fd_(env.console_fd.value_or(STDERR_FILENO)),
      checkpoint_(resume.value_or("").string()),
      resume_command_(env.resume_command.empty()
                          ? "scaletrain resume " + core::shell_word(run.recipe.output)
                          : env.resume_command) {
  if (env.rank != 0) return;
  costs_.threads = run.recipe.data.threads > 0
                       ? run.recipe.data.threads
                       : data::automatic_threads(env.local_rank, env.local_world_size);
  costs_.cores = std::max(1, core::usable_cores() / env.local_world_size);
  const std::filesystem::path folder = run.recipe.output;
  observe::EnvironmentFacts facts;
  facts.versions = {{"scaletrain", core::version()}, {"torch", TORCH_VERSION}};
  facts.devices = {dist::device_name(run.group->device())};
  facts.world_size = env.world_size;
  facts.command = observe::command_line(::getppid());
  const observe::StartFacts start = start_facts(run, env);
  files_ = {{folder / "environment.json", observe::environment_json(facts)},
            {folder / "recipe.json", recipe::to_json(run.recipe)}};
  for (const auto& [path, text] : files_) {
    // The launcher has written a new run's recipe, except values that it cannot know.
    const bool is_there = !resume && run.state.auto_per_device == 0;
    if (!is_there || path.filename() != "recipe.json") write_file(path, text);
  }
  write_start(folder / "start.json", observe::start_json(start));
  metrics_ = std::make_unique<observe::MetricsWriter>(folder / "metrics.jsonl", run.housekeeping);
  journal_ = std::make_unique<observe::RunJournal>(folder, run.housekeeping);
  console_log_ = std::make_unique<observe::LineWriter>(folder / "console.log", run.housekeeping);
  progress_ = std::make_unique<observe::Progress>(
      console_fd_,
      observe::ProgressGoal{.total_steps = run.length.total_steps,
                            .steps_per_epoch = run.length.steps_per_epoch,
                            .epoch_shift = run.length.epoch_shift,
                            .growing = run.length.growing.get()},
      [this](const std::string& line) { console_log_->append(line); });
  const std::string block = observe::start_text(start);
  console_log_->append(block.substr(0, block.find_last_not_of('\n') + 1));
  observe::offer(console_fd_, block, kStartWaitMs);
}

Reporter::~Reporter() = default;

void Reporter::step(const StepResult& result, double seconds, bool first, bool due) {
  const std::int64_t batch = sizes_.of_step(result.facts.step);
  ++window_steps_;
  window_samples_ += batch;
  own_samples_ += batch;
  window_s_ += seconds;
  own_s_ += seconds;
  stages_ += result.facts.stages;
  window_stages_ += result.facts.stages;
  window_exchanged_ += result.facts.exchanged_bytes;
  flops_.add(result.facts.step, seconds);
  if (!result.has_targets) count_without_targets(result);
  if (first || due) {
    const at::Tensor worst = dist::send(window_values(), run_.group->device());
    run_.group->all_reduce_max(worst, "slowest rank").wait();
    observe::TrainRecord line = record(result);
    line.speed = flops_.take_window();
    lines_.push(worst, std::move(line));
    if (auto known = lines_.next()) write(std::move(*known));
    window_steps_ = window_samples_ = window_exchanged_ = 0;
    window_s_ = 0;
    window_stages_ = {};
  }
  if (speaks()) progress_->tick(result.facts.step + 1, result.loss, result.facts.lr);
}

std::vector<double> Reporter::window_values() {
  const auto steps = static_cast<double>(window_steps_);
  const double samples = static_cast<double>(run_.batch.micro_steps(window_samples_)) *
                         static_cast<double>(run_.batch.per_device);
  const core::RowSeconds rows = take_own_times(/*waits=*/false);
  std::vector<double> own(kWorst);
  const double waited_s = rows[static_cast<std::size_t>(core::TimeRow::kCommunication)];
  own[kData] = own_times(rows).data / steps;
  own[kCompute] = (own_times(rows).compute + waited_s) / steps;
  own[kMemory] = static_cast<double>(dist::peak_memory_bytes(run_.group->device()));
  own[kRead] = window_stages_.read_s / samples;
  own[kDecode] = window_stages_.decode_s / samples;
  own[kAugment] = window_stages_.augment_s / samples;
  append_for_ranks(own, rows, run_.group->rank(), run_.group->world_size());
  return own;
}

void Reporter::count_without_targets(const StepResult& result) {
  if (++empty_steps_ > 1) return;
  note(fmt::format(
      "warning: step {} learned nothing, and its loss of 0 says nothing: no target of its batch "
      "carries a loss; the summary counts such steps",
      result.facts.step + 1));
}

void Reporter::drain() {
  while (auto line = lines_.drain()) write(std::move(*line));
}

void Reporter::write(Outcomes<observe::TrainRecord>::Outcome line) {
  if (!speaks()) return;
  observe::TrainRecord& record = line.facts;
  record.data_time = line.sums[kData];
  record.compute_time = line.sums[kCompute];
  record.read_time = line.sums[kRead];
  record.decode_time = line.sums[kDecode];
  record.augment_time = line.sums[kAugment];
  record.memory_bytes = static_cast<std::int64_t>(line.sums[kMemory]);
  peak_bytes_ = std::max(peak_bytes_, record.memory_bytes);
  keep_files();
  metrics_->write(record);
  write_times(record, std::span(line.sums).subspan(kWorst));
  progress_->train(record);
}

void Reporter::write_times(const observe::TrainRecord& record, std::span<const double> ranks) {
  observe::LedgerRecord ledger = ledger_of_ranks(ranks);
  ledger.attempt = record.attempt;
  ledger.step = record.step;
  metrics_->write(ledger);
}

void Reporter::end_times(bool waits) {
  if (!speaks()) return;
  metrics_->write(observe::LedgerRecord{
      .attempt = attempt_, .step = run_.state.step, .seconds = take_own_times(waits)});
}

std::optional<std::int64_t> Reporter::image_size_of(std::int64_t step) const {
  const recipe::Data& data = run_.recipe.data;
  if (!data.resize_ramp) return std::nullopt;
  return data::plan_image_sizes(data.image_size, data.resize_ramp, run_.length.steps_per_epoch)
      .at(run_.length.place(step));
}

std::int64_t Reporter::tokens_a_sample() const {
  const bool has_tokens = run_.task->row().reads == recipe::TaskRow::Reads::kTokens;
  return has_tokens ? run_.recipe.data.context : 0;
}

observe::RunCosts Reporter::costs() const {
  observe::RunCosts costs = costs_;
  const double samples = static_cast<double>(run_.batch.micro_steps(own_samples_)) *
                         static_cast<double>(run_.batch.per_device);
  if (samples > 0) {
    costs.read_s = stages_.read_s / samples;
    costs.decode_s = stages_.decode_s / samples;
    costs.augment_s = stages_.augment_s / samples;
  }
  costs.saves_async = run_.recipe.checkpoint.async;
  costs.threads_searched = run_.recipe.data.search_threads;
  costs.image_size = tokens_a_sample() > 0 ? 0 : run_.recipe.data.image_size;
  return costs;
}

// Returns the record of the window that ends here, without the maxima over the ranks.
observe::TrainRecord Reporter::record(const StepResult& result) const {
  const format::TrainState& state = run_.state;
  const std::int64_t step = result.facts.step + 1;
  const std::int64_t tokens = tokens_a_sample();
  const bool communicates = run_.mesh->plan().size(core::kGradientAxes) > 1;
  return {
      .attempt = attempt_,
      .step = step,
      .epoch = run_.length.place(result.facts.step) / run_.length.steps_per_epoch,
      .samples = sizes_.samples_before(step),
      .loss = result.loss,
      .lr = result.facts.lr,
      .weight_decay = result.facts.weight_decay,
      .image_size = image_size_of(result.facts.step),
      .batch = run_.batch.ramp ? std::optional(sizes_.of_step(result.facts.step)) : std::nullopt,
      .grad_norm = result.grad_norm,
      .loss_scale = result.loss_scale,
      .model = named(run_, result.statistics),
      .samples_per_s = static_cast<double>(window_samples_) / window_s_,
      .tokens_per_s = tokens > 0
                          ? std::optional(static_cast<double>(window_samples_ * tokens) / window_s_)
                          : std::nullopt,
      .exchanged_bytes = communicates ? std::optional(window_exchanged_) : std::nullopt,
      .loader_threads = run_.recipe.data.search_threads
                            ? std::optional(run_.sets.train.stream->threads())
                            : std::nullopt,
      .order_digest = state.order_digest,
      .skipped_samples = state.skipped_samples,
      .replica = run_.replicas->traits().reported_replica};
}

void Reporter::write_event(const std::string& event, const nlohmann::ordered_json& fields) {
  if (journal_) journal_->write(event, attempt_, fields);
}

bool Reporter::write_file(const std::filesystem::path& path, const std::string& text) {
  return run_.housekeeping->attempt("the run goes on without that file", [&] {
    core::WatchedDisk disk = run_.disk();
    disk.make_folders(path.parent_path());
    core::write_durably(disk, path, text);
  });
}

// Not synced: the first step must not wait for the disk, and each start writes the file again.
void Reporter::write_start(const std::filesystem::path& path, const std::string& text) {
  run_.housekeeping->attempt("the run goes on without that file", [&] {
    core::WatchedDisk disk = run_.disk();
    const std::filesystem::path temporary =
        path.parent_path() / core::temporary_name(".start.json", ::gettid());
    disk.create(temporary, 0)->write(std::as_bytes(std::span(text)));
    disk.rename(temporary, path);
  });
}

// A user may have removed the files, or the whole folder.
void Reporter::keep_files() {
  for (const auto& [path, text] : files_) {
    std::error_code unknown;
    if (std::filesystem::exists(path, unknown) || unknown) continue;
    if (!write_file(path, text)) continue;
    core::warn("{}: was removed during the run: it is written again", path.string());
  }
}

void Reporter::eval(const std::string& split, const EvalResult& result,
                    const format::TrainState& model) {
  if (!speaks()) return;
  const observe::EvalRecord record{.attempt = attempt_,
                                   .split = split,
                                   .step = model.step,
                                   .epoch = last_epoch(model),
                                   .measures = result.measures,
                                   .count = result.count,
                                   .counted = run_.task->row().counted,
                                   .skipped = result.skipped,
                                   .weights = run_.replicas->traits().evaluated_weights};
  metrics_->write(record);
  progress_->eval(record);
  if (split == "test") {
    test_ = observe::RunSummary::Test{.measures = result.measures,
                                      .count = result.count,
                                      .counted = record.counted,
                                      .step = model.step};
  }
}

void Reporter::finished() {
  if (!speaks()) return;
  nlohmann::ordered_json file{{"step", run_.state.step}, {"epoch", run_.state.epoch}};
  if (const std::string early = early_end(run_.recipe, run_.state); !early.empty()) {
    file["early"] = early;
    write_event("early_stopped", {{"step", run_.state.step}, {"cause", early}});
  }
  if (test_) {
    for (const auto& [measure, value] : test_->measures) file["test_" + measure->name] = value;
    file["test_step"] = test_->step;
  }
  write_file(std::filesystem::path(run_.recipe.output) / "finished.json", file.dump(2) + "\n");
  write_event("finished", {{"step", run_.state.step}});
}

void Reporter::summary(const std::string& stopped) {
  if (!speaks()) return;
  end_times(/*waits=*/true);
  const observe::RunTimes times = observe::read_run_times(run_.recipe.output);
  progress_.reset();  // ends the bar's line
  const format::TrainState& state = run_.state;
  observe::RunSummary summary{
      .name = run_.recipe.name,
      .stopped = stopped,
      .early = early_end(run_.recipe, state),
      .step = state.step,
      .trained_s = state.trained_s,
      .samples_per_s = own_s_ > 0 ? static_cast<double>(own_samples_) / own_s_ : 0,
      .tokens_per_s =
          own_s_ > 0 ? static_cast<double>(own_samples_ * tokens_a_sample()) / own_s_ : 0,
      .peak_bytes = peak_bytes_,
      .skipped_steps = state.skipped_steps,
      .skipped_samples = state.skipped_samples,
      .empty_steps = empty_steps_,
      .comparisons = comparisons_,
      .differences = differences_,
      .housekeeping_failures = run_.housekeeping->failures(),
      .weights_differences = run_.weights_differences,
      .best = std::nullopt,
      .test = test_,
      .checkpoint = checkpoint_,
      .run = run_.recipe.output,
      .resume = resume_command_};
  if (observe::is_long_enough(times)) {
    summary.times = times;
    for (observe::SlowCause& cause : observe::slow_causes(times, costs())) {
      summary.slow.push_back(std::move(cause.text));
    }
  }
  if (const auto speed = flops_.total()) {
    summary.model_speed = observe::model_speed_text(*speed, flops_.peak());
  }
  if (state.best_step >= 0) {
    const std::string& metric = run_.recipe.checkpoint.best.metric;
    summary.best = observe::RunSummary::Best{
        .measured = {run_.task->row().measure(metric), state.best_metric}, .step = state.best_step};
  }
  std::string text = observe::summary_text(summary);
  observe::offer(console_fd_, text, kSummaryWaitMs);
  text.pop_back();  // its last newline
  console_log_->append(text);
  observe::sync_logs(run_.recipe.output, *run_.housekeeping,
                     [this] { run_.beat.enter(core::Phase::kSaving); });
}

}  // namespace scaletrain::train
