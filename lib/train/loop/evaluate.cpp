#include "lib/train/loop/evaluate.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/process/planted_delay.h"
#include "lib/core/process/time_ledger.h"
#include "lib/dist/any_rank.h"
#include "lib/train/model/buffers.h"
#include "lib/train/rules/score_rows.h"
#include "lib/train/run/stages.h"
#include "lib/train/run/state_shards.h"
#include "lib/train/state/evaluation_weights.h"

namespace scaletrain::train {
namespace {

constexpr double kAskEveryS = 0.5;  // seconds between checks for other ranks' stops

// Slots that are summed besides the task's sums.
enum EvaluationSlot : std::int64_t { kEvalSkipped, kEvalTerminate, kEvalInterrupt, kEvalSlots };

// Decides if evaluation must stop; asks the other ranks at intervals.
class StopCheck {
 public:
  explicit StopCheck(dist::Group& group) : group_(group) {}

  bool operator()() {
    const bool own = core::stop_reason() != core::StopReason::kNone;
    if (!own && core::seconds_since(asked_) < kAskEveryS) return false;
    asked_ = core::now();
    return group_.stop_was_heard(own);
  }

 private:
  dist::Group& group_;
  core::SteadyTime asked_ = core::now();
};

// All ranks of a sharded model run equally many batches: a rank without batches runs dummy ones, so
// that collectives still match. Otherwise each runs its own.
class Turns {
 public:
  explicit Turns(Run& run) : run_(run), together_(run.engine->runs_with_others()) {}

  enum class Turn { kBatch, kEnd, kStop };
  // Returns this rank's next turn: a batch, a dummy batch or the end, after a stop too.
  Turn next(bool has_batch, bool stopped) const {
    if (together_) {
      dist::Group& world = run_.mesh->world();
      const at::Tensor any = at::zeros({2}, at::TensorOptions(at::kInt).device(world.device()));
      any[0].fill_(has_batch ? 1 : 0);
      any[1].fill_(stopped ? 1 : 0);
      world.all_reduce_max(any, "whether a rank has a batch").wait();
      const at::Tensor host = world.to_host(any);
      has_batch = host.const_data_ptr<int>()[0] > 0;
      stopped = host.const_data_ptr<int>()[1] > 0;
    }
    if (stopped) return Turn::kStop;
    return has_batch ? Turn::kBatch : Turn::kEnd;
  }
  void accompany() const {
    if (together_) run_.engine->accompany();
  }

 private:
  Run& run_;
  bool together_;
};

// Sums over this rank's batches.
struct Totals {
  at::Tensor sums;
  ScoreRows scores;
};

// Adds up this rank's batches if it counts samples, and keeps their scores. Returns true if a stop
// interrupted it.
bool add_up(Run& run, task::Split split, const Watcher& watcher, Totals& totals,
            EvalResult& result) {
  data::BatchStream& stream = *run.sets.stream(split);
  stream.seek({});
  StopCheck stops(run.mesh->world());
  // Ranks that share a model or a sequence exchange in forward, and stop before the same batch.
  dist::Group& contexts = run.mesh->group(core::Axis::kContext);
  dist::Group& tensors = run.mesh->group(core::Axis::kTensor);
  const auto said = [](dist::Group& ranks, bool own) {
    return dist::any_rank(ranks, own, "whether to stop");
  };
  const auto stop = [&] { return said(contexts, said(tensors, stops())); };
  const bool counts = run.mesh->counts(), has_values = run.mesh->counts_losses();
  const Turns turns(run);
  for (;;) {
    std::optional<data::Batch> next;
    const bool stopped = !run.engine->agree(!stop());
    if (!stopped) next = stream.next();
    const Turns::Turn turn = turns.next(next.has_value(), stopped);
    if (turn == Turns::Turn::kStop) return true;
    if (turn == Turns::Turn::kEnd) return false;
    run.beat.enter(core::Phase::kValidating);
    core::delay_if_planted(core::DelayPlace::kEvaluation);
    // If only other ranks have batches left, this rank runs one without samples.
    const data::Batch batch = std::move(next).value_or(data::Batch());
    if (counts) {
      result.bad_samples.insert(result.bad_samples.end(), batch.skipped.begin(),
                                batch.skipped.end());
    }
    if (batch.count == 0) {  // or all of its samples were bad
      turns.accompany();
      continue;
    }
    const task::Example example = run.task->prepare(batch, /*training=*/false);
    const engine::Evaluated own = run.engine->evaluate(example);
    if (has_values) totals.sums.add_(own.sums);
    if (own.scores.defined()) totals.scores.add(own.scores, batch.position);
    if (has_values && watcher) watcher(batch, example, own.output);
  }
}

}  // namespace

EvalResult evaluate(Run& run, task::Split split, const Watcher& watcher) {
  const core::TimeScope time(core::TimeRow::kEvaluation);
  const at::NoGradGuard no_grad;
  const NamedTensors own = local_tensors(model_shards(run)), evaluated = evaluated_tensors(run);
  std::vector<at::Tensor> replaced;
  for (const auto& [name, tensor] : evaluated) replaced.push_back(own.at(name));
  KeptTensors kept(replaced);
  for (const auto& [name, tensor] : evaluated) own.at(name).copy_(tensor);
  const bool has_weights =
      run.replicas->weights_differ() || evaluated.size() > run.learner.buffers().size();
  if (has_weights) run.engine->weights_changed();
  run.learner.model->eval();

  dist::Group& world = run.mesh->world();
  const auto doubles = at::TensorOptions(at::kDouble).device(world.device());
  const std::int64_t sum_count = run.task->sum_count();
  const at::Tensor slots = at::zeros({kEvalSlots}, doubles);
  Totals own_totals{.sums = at::zeros({sum_count}, doubles),
                    .scores = ScoreRows(run.task->score_columns())};
  EvalResult result;
  const bool cut_short = add_up(run, split, watcher, own_totals, result);
  run.learner.model->train();
  kept.put_back();
  if (has_weights) run.engine->weights_changed();

  slots[kEvalSkipped].add_(static_cast<double>(result.bad_samples.size()));
  if (cut_short && core::stop_reason() != core::StopReason::kNone) {
    slots[core::stop_reason() == core::StopReason::kInterrupt ? kEvalInterrupt : kEvalTerminate]
        .add_(1);
  }
  const at::Tensor all = at::cat({own_totals.sums, slots});
  world.all_reduce_sum(all, "evaluation sums").wait();
  const at::Tensor host = world.to_host(all);
  const std::span<const double> totals(host.const_data_ptr<double>(),
                                       static_cast<std::size_t>(sum_count + kEvalSlots));
  const auto count = static_cast<std::size_t>(sum_count);
  const at::Tensor scores = of_last_stage(run, own_totals.scores.gather(run.mesh->data()));
  result.measures = run.task->finish(split, totals.first(count), scores);
  result.count = static_cast<std::int64_t>(totals[task::Task::kTargets]);
  result.skipped = static_cast<std::int64_t>(totals[count + kEvalSkipped]);
  if (totals[count + kEvalTerminate] > 0) result.stop = core::StopReason::kTerminate;
  if (totals[count + kEvalInterrupt] > 0) result.stop = core::StopReason::kInterrupt;
  return result;
}

void require_samples(const EvalResult& result, const std::string& split) {
  if (result.count > 0 || result.skipped == 0) return;
  throw core::DataError(fmt::format("/data/{}", split),
                        fmt::format("none of its {} samples can be used", result.skipped),
                        "look at the warnings above, and repair the set: scaletrain data check");
}

}  // namespace scaletrain::train
