// Events of a run besides its steps: the part of Reporter that records them and writes the journal.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lib/core/error.h"
#include "lib/core/text/text.h"
#include "lib/core/text/url.h"
#include "lib/observe/near_path.h"
#include "lib/train/loop/reporter.h"

namespace scaletrain::train {

void Reporter::saved(const checkpoint::Saved& saved) {
  checkpoint_ = saved.path.string();
  if (!speaks()) return;
  progress_->note(fmt::format("saved {} in {:.2f} s, for which training waited {:.3f} s",
                              observe::near_path(checkpoint_), saved.write_s, saved.stall_s));
  metrics_->write(observe::SaveRecord{.attempt = attempt_,
                                      .step = saved.step,
                                      .bytes = saved.bytes,
                                      .linked_bytes = saved.linked_bytes,
                                      .stall_s = saved.stall_s,
                                      .write_s = saved.write_s});
  write_event("checkpoint_saved", {{"step", saved.step}});
}

void Reporter::save_failed(const core::Error& error) {
  write_event(
      "checkpoint_refused",
      {{"step", run_.state.step}, {"cause", fmt::format("{}: {}", error.place(), error.found())}});
}

void Reporter::mirrored(const mirror::Copied& copied) {
  if (!speaks()) return;
  const std::string place = core::shown_path(run_.recipe.checkpoint.mirror);
  progress_->note(
      copied.bytes > 0
          ? fmt::format("copied the checkpoint of step {} to {}, {:.2f} s after it was "
                        "saved",
                        copied.step, place, copied.seconds)
          : fmt::format("{} has the checkpoint of step {} already", place, copied.step));
  metrics_->write(observe::MirrorRecord{.attempt = attempt_,
                                        .step = copied.step,
                                        .bytes = copied.bytes,
                                        .copy_s = copied.seconds,
                                        .behind = copied.behind});
}

void Reporter::replicated(std::int64_t step, const replica::Replicated& copies) {
  if (!speaks()) return;
  progress_->note(fmt::format("the checkpoint of step {} is in the memory of {}", step,
                              core::counted(copies.nodes, "node")));
  metrics_->write(observe::ReplicaRecord{
      .attempt = attempt_, .step = step, .bytes = copies.bytes, .nodes = copies.nodes});
}

void Reporter::norms(observe::NormsRecord record) {
  if (!speaks()) return;
  record.attempt = attempt_;
  metrics_->write(record);
}

void Reporter::note(const std::string& text) {
  if (speaks()) progress_->note(text);
}

void Reporter::skipped(const StepResult& result) {
  if (!speaks()) return;
  write_event(
      "step_skipped",
      {{"step", result.facts.step + 1},
       {"cause", result.overflowed()
                     ? fmt::format("gradients overflow at a loss scale of {:g}", *result.loss_scale)
                     : fmt::format("not finite: loss {}, gradient norm {}", result.loss,
                                   result.grad_norm)}});
  if (result.overflowed()) {
    progress_->note(fmt::format(
        "step {} was left out on all ranks: its gradients are too large for a loss scale of {:g}, "
        "which falls",
        result.facts.step + 1, *result.loss_scale));
    return;
  }
  progress_->note(
      fmt::format("warning: step {} was left out on all ranks: loss {}, gradient norm {}",
                  result.facts.step + 1, result.loss, result.grad_norm));
}

void Reporter::anomaly(const AnomalyReport& report) {
  if (!speaks()) return;
  nlohmann::ordered_json fields{{"step", report.step},
                                {"kind", report.kind},
                                {"policy", report.policy},
                                {"skipped", !report.taken},
                                {"rank", report.rank}};
  if (!report.unit.empty()) fields["unit"] = report.unit;
  fields["samples"] = report.samples;
  fields["keys"] = report.keys;
  fields["cause"] = report.cause;
  write_event("anomaly", fields);
  const std::string unit =
      report.unit.empty() ? "" : fmt::format(", first not finite: {}", report.unit);
  progress_->note(fmt::format("warning: step {} was {} on all ranks: {} (rank {}{})", report.step,
                              report.taken ? "clipped" : "left out", report.cause, report.rank,
                              unit));
}

void Reporter::rolled_back(std::int64_t step) {
  if (!speaks()) return;
  write_event("rolled_back", {{"step", run_.state.step}, {"checkpoint", step}});
  progress_->note(
      fmt::format("went back to the weights of step {}; the batches of steps {} to {} are skipped",
                  step, step + 1, run_.state.step));
}

void Reporter::replicas_compared(double seconds,
                                 const std::optional<ReplicaDifference>& difference) {
  if (!speaks()) return;
  ++comparisons_;
  metrics_->write(observe::ComparisonRecord{
      .attempt = attempt_, .step = run_.state.step, .equal = !difference, .seconds = seconds});
  if (!difference) return;
  ++differences_;
  std::vector<int> ranks;
  for (const auto& [rank, value] : difference->values) ranks.push_back(rank);
  write_event("replicas_differ", {{"step", run_.state.step},
                                  {"action", run_.recipe.integrity->action},
                                  {"tensor", difference->tensor},
                                  {"element", difference->element},
                                  {"tensors", difference->tensors},
                                  {"ranks", ranks},
                                  {"wrong", difference->wrong},
                                  {"cause", difference->text()}});
  progress_->note(fmt::format("warning: step {}: replicas differ: {}; {}", run_.state.step,
                              difference->text(), difference->verdict()));
}

void Reporter::wrong_product(const std::string& cause) {
  if (!speaks()) return;
  write_event("wrong_product", {{"step", run_.state.step}, {"cause", cause}});
  progress_->note(fmt::format("warning: step {}: {}", run_.state.step, cause));
}

void Reporter::went_back(std::int64_t step) {
  if (!speaks()) return;
  write_event("went_back", {{"step", step}, {"checkpoint", run_.state.step}});
  progress_->note(
      fmt::format("went back to the verified checkpoint of step {}; steps {} to {} are "
                  "repeated",
                  run_.state.step, run_.state.step + 1, step));
}

void Reporter::saturated(std::int64_t step, const std::string& warning) {
  if (!speaks()) return;
  write_event("saturated", {{"step", step}, {"cause", warning.substr(warning.find(' ') + 1)}});
  progress_->note(warning);
}

void Reporter::lr_reduced() {
  if (!speaks()) return;
  const recipe::Plateau& plateau = *run_.recipe.schedule.plateau;
  write_event("lr_reduced",
              {{"step", run_.state.step},
               {"factor", plateau.factor},
               {"cause", fmt::format("{} has not improved for more than {}", plateau.metric,
                                     core::counted(plateau.patience, "validation"))}});
}

void Reporter::slow(const SlowRanks& slow) {
  if (!speaks()) return;
  for (observe::Straggler rank : slow.ranks) {
    if (run_.replicas->traits().reported_replica) {  // ranks are counted in this replica
      const std::vector<int> ranks = run_.mesh->plan().replica_group(run_.mesh->rank());
      rank.rank = ranks.at(static_cast<std::size_t>(rank.rank));
    }
    progress_->note(fmt::format(
        "warning: rank {} is steadily slower than the others, by {}: {:.4f} s of its own a step, "
        "the median rank's is {:.4f} s",
        rank.rank, rank.phase, rank.seconds, rank.median));
    metrics_->write(observe::StragglerRecord{.attempt = attempt_, .step = slow.step, .slow = rank});
  }
}

void Reporter::lost_replica(int replica, std::int64_t step, std::int64_t left) {
  if (!speaks()) return;
  progress_->note(
      fmt::format("warning: replica {} is lost, with what it learned after step {}; {} go on: the "
                  "rest of its samples is not trained on",
                  replica, step, left));
  metrics_->write(observe::LostReplicaRecord{.attempt = attempt_,
                                             .step = run_.state.step,
                                             .replica = replica,
                                             .kept_step = step,
                                             .left = left});
}

}  // namespace scaletrain::train
