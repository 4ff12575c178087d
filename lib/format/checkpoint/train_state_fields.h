// Fields of state.json, each named once (docs/reference/formats/checkpoint.md).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/core/plan/batch_sizes.h"

namespace scaletrain::format {

// One of the best checkpoints, with the value of its measure.
struct RankedStep {
  std::int64_t step = 0;
  double metric = 0;
  bool operator==(const RankedStep&) const = default;
};

// Loss and gradient norm of a step, both finite.
struct StepMeasure {
  std::int64_t step = 0;  // from 1
  double loss = 0, grad_norm = 0;
  bool operator==(const StepMeasure&) const = default;
};

// State of a checkpoint, without tensors.
struct TrainState {
  std::int64_t step = 0;           // optimizer steps done
  std::int64_t epoch = 0;          // epoch of the next step
  std::int64_t step_in_epoch = 0;  // index of the next step in its epoch
  std::int64_t samples = 0;        // samples trained so far, all ranks
  std::int64_t global_batch = 0;   // samples of a step; a resume must use the same
  // Batch size ramp-up to `global_batch`: start, increment and samples
  // (lib/core/plan/batch_sizes.h), and the trained samples of the epoch (`position`); {} and 0 if
  // the batch size is constant.
  std::vector<std::int64_t> batch_ramp = {};
  std::int64_t position = 0;
  std::uint64_t order_digest = 0;
  int order_version = 0;
  int random_version = 1;        // core::kRandomVersion; default for old writers
  double trained_s = 0;          // wall time of training so far
  double seen_s = 0;             // value of trained_s up to which intervals in minutes were checked
  std::string best_by = "top1";  // measure that selects the best checkpoint
  double best_metric = -1;       // value of the best checkpoint, -1: none yet
  std::int64_t best_step = -1;
  std::vector<RankedStep> best_steps;  // the checkpoints kept by metric, the best first
  bool validation_due = false;         // validation of this step was interrupted
  std::string stopping_by = {};        // measure for early stopping; "": none yet
  double stopping_best = 0;            // best value of this measure so far
  std::int64_t stopping_step = -1;     // the last validation that was compared with it
  std::int64_t no_better = 0;          // consecutive validations without improvement
  std::string plateau_by = {};         // measure for the plateau schedule; "": none yet
  double plateau_best = 0;             // best value of this measure so far
  std::int64_t plateau_step = -1;      // the last validation that was compared with it
  std::int64_t plateau_bad = 0;        // consecutive validations without improvement
  std::int64_t plateau_cooldown = 0;   // validations still to ignore
  std::int64_t plateau_drops = 0;      // reductions of the learning rate so far
  // Of /anomaly: the last steps, from which the bound of the next ones is computed; the number of
  // anomalous steps, and those of the last steps, from 1; first and last step of each range that a
  // rollback has left out.
  std::vector<StepMeasure> anomaly_window = {};
  std::int64_t anomalies = 0;
  std::vector<std::int64_t> anomaly_steps = {};
  std::vector<std::vector<std::int64_t>> skipped_ranges = {};
  std::int64_t ema_updates = 0;  // updates of the EMA weights so far
  std::int64_t swa_updates = 0;  // updates of the SWA weights so far
  int skipped_steps = 0;         // steps left out as anomalous, or by a rollback
  // Positions before this step that were not trained into the weights, since replicas were lost or
  // late. Each row is epoch, begin, end, period, first, count: of every `period` positions from
  // `begin` to `end`, the `count` positions from `first` on.
  std::vector<std::vector<std::int64_t>> lost_positions;
  std::int64_t skipped_samples = 0;  // bad samples left out, all ranks
  std::int64_t set_samples = 0;      // size of the training set; 0: not counted (streamed order)
  std::string index_digest,
      set_digest;               // lib/data/set/set_digest.h; "": not computed
  std::int64_t per_device = 0;  // samples of a micro-step, if the order depends on it
  std::int64_t auto_per_device =
      0;  // result of batch.per_device "auto"; 0: the recipe has a number
  // Budget of recompute.budget_mb (0: none), and the units it chose for activation checkpointing.
  std::int64_t recompute_budget_mb = 0;
  std::vector<std::string> recomputed_units;
  // Pipeline stages of equal time: the number of each stage's first unit; {}: not measured.
  std::vector<std::int64_t> stage_begins;
  std::vector<std::int64_t> shard_sizes;    // streamed order: samples by shard, -1: not known yet
  std::vector<std::int64_t> shard_digests;  // streamed order: data::Dataset::shard_digest() each
  nlohmann::json schedule =
      nlohmann::json::object();  // {"step", "lr"}: informative; computed from the step
  nlohmann::json scaler = nlohmann::json::object();  // precision::Precision::state()
  nlohmann::json random =
      nlohmann::json::object();  // {"seed", ...}: random numbers depend only on seed and step
  std::vector<std::vector<std::int64_t>> bucket_layout;
  // A bitwise identical resume requires equal values of these fields.
  int world_size = 1;
  // Pipeline, replica, shard, tensor, and context where that is above 1; {}: all are replicas.
  std::vector<std::int64_t> mesh = {};
  int expert = 1;  // ranks that hold the experts of a mixture together
  int threads = 1;
  std::string cpu_capability;  // ATen's
  std::string torch_version;
  std::string device;    // "cpu" or the GPU's name
  std::string exchange;  // "gloo", "shm" or "nccl"; "": one rank, or not known
};

// Returns the batch size ramp-up; nullopt if the batch size is constant. For a state read from a
// file, call check_state() first.
inline std::optional<core::BatchRamp> ramp_of(const TrainState& state) {
  if (state.batch_ramp.size() != 3) return std::nullopt;
  return core::BatchRamp{state.batch_ramp[0], state.batch_ramp[1], state.batch_ramp[2]};
}

// How a field is read.
struct FieldRule {
  std::int64_t lowest = 0;  // minimum of an integer
  bool later = false;       // true: absent in files of older versions
};

// Calls visit(name, member, rule) for every field, in the order of the file.
template <class State, class Visit>
void visit_fields(State& state, const Visit& visit) {
  constexpr FieldRule kAlways{}, kLater{.lowest = 0, .later = true};
  visit("step", state.step, kAlways);
  visit("epoch", state.epoch, kAlways);
  visit("step_in_epoch", state.step_in_epoch, kAlways);
  visit("samples", state.samples, kAlways);
  visit("global_batch", state.global_batch, kAlways);
  visit("batch_ramp", state.batch_ramp, FieldRule{.lowest = 1, .later = true});
  visit("position", state.position, kLater);
  visit("order_digest", state.order_digest, kAlways);
  visit("order_version", state.order_version, kAlways);
  visit("random_version", state.random_version, FieldRule{.lowest = 1, .later = true});
  visit("trained_s", state.trained_s, kAlways);
  visit("seen_s", state.seen_s, kLater);
  visit("best_by", state.best_by, kLater);
  visit("best_metric", state.best_metric, kAlways);
  visit("best_step", state.best_step, FieldRule{.lowest = -1});
  visit("best_steps", state.best_steps, kLater);
  visit("validation_due", state.validation_due, kLater);
  visit("stopping_by", state.stopping_by, kLater);
  visit("stopping_best", state.stopping_best, kLater);
  visit("stopping_step", state.stopping_step, FieldRule{.lowest = -1, .later = true});
  visit("no_better", state.no_better, kLater);
  visit("plateau_by", state.plateau_by, kLater);
  visit("plateau_best", state.plateau_best, kLater);
  visit("plateau_step", state.plateau_step, FieldRule{.lowest = -1, .later = true});
  visit("plateau_bad", state.plateau_bad, kLater);
  visit("plateau_cooldown", state.plateau_cooldown, kLater);
  visit("plateau_drops", state.plateau_drops, kLater);
  visit("anomaly_window", state.anomaly_window, kLater);
  visit("anomalies", state.anomalies, kLater);
  visit("anomaly_steps", state.anomaly_steps, FieldRule{.lowest = 1, .later = true});
  visit("skipped_ranges", state.skipped_ranges, kLater);
  visit("ema_updates", state.ema_updates, kLater);
  visit("swa_updates", state.swa_updates, kLater);
  visit("skipped_steps", state.skipped_steps, kAlways);
  visit("skipped_samples", state.skipped_samples, kLater);
  visit("lost_positions", state.lost_positions, kLater);
  visit("set_samples", state.set_samples, kLater);
  visit("index_digest", state.index_digest, kLater);
  visit("set_digest", state.set_digest, kLater);
  visit("per_device", state.per_device, kLater);
  visit("auto_per_device", state.auto_per_device, kLater);
  visit("recompute_budget_mb", state.recompute_budget_mb, kLater);
  visit("recomputed_units", state.recomputed_units, kLater);
  visit("stage_begins", state.stage_begins, kLater);
  visit("shard_sizes", state.shard_sizes, FieldRule{.lowest = -1, .later = true});
  visit("shard_digests", state.shard_digests, FieldRule{.lowest = -1, .later = true});
  visit("schedule", state.schedule, kAlways);
  visit("scaler", state.scaler, kAlways);
  visit("random", state.random, kAlways);
  visit("bucket_layout", state.bucket_layout, kAlways);
  visit("world_size", state.world_size, FieldRule{.lowest = 1});
  visit("mesh", state.mesh, FieldRule{.lowest = 1, .later = true});
  visit("expert", state.expert, FieldRule{.lowest = 1, .later = true});
  visit("threads", state.threads, FieldRule{.lowest = 1});
  visit("cpu_capability", state.cpu_capability, kAlways);
  visit("torch_version", state.torch_version, kAlways);
  visit("device", state.device, kAlways);
  visit("exchange", state.exchange, kLater);
}

// Returns the name of `member`, a field of `state`.
std::string field_name(const TrainState& state, const void* member);

}  // namespace scaletrain::format
