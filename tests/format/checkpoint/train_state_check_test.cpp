#include "lib/format/checkpoint/train_state_check.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "lib/core/error.h"
#include "tests/format/checkpoint_support.h"

using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kRemedy =
    "\n  use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";

// Of 1400 samples in batches of 64: 21 steps an epoch, and 2 * 21 + 8 = 50.
TrainState sensible() {
  TrainState state;
  state.step = 50;
  state.epoch = 2;
  state.step_in_epoch = 8;
  state.samples = 3200;
  state.global_batch = 64;
  state.set_samples = 1400;
  state.best_metric = 0.5;
  state.best_step = 40;
  state.skipped_steps = 1;
  state.trained_s = 2;
  state.schedule = {{"step", 50}};
  state.bucket_layout = {{3, 2}, {1, 0}};
  return state;
}

std::string fault_of_state(const std::function<void(TrainState&)>& change) {
  TrainState state = sensible();
  change(state);
  return test::message_of<core::CheckpointError>([&] { check_state(state, "state.json"); });
}

std::string fault_of_end(const TrainState& state, const nlohmann::json& recipe) {
  return test::message_of<core::CheckpointError>(
      [&] { check_not_past_end(state, recipe, "state.json"); });
}

}  // namespace

TEST_CASE("fields that fit each other pass") {
  CHECK_NOTHROW(check_state(sensible(), ""));
  CHECK_NOTHROW(check_state(TrainState(), ""));
}

TEST_CASE("each field that cannot be true beside the others is named") {
  const std::vector<std::pair<std::string, std::function<void(TrainState&)>>> cases{
      {"samples: is 3200, which is not 1000000000000000000 steps of 64",
       [](TrainState& state) { state.step = 1'000'000'000'000'000'000; }},
      {"samples: is 3136, which is not 50 steps of 64",
       [](TrainState& state) { state.samples = 3136; }},
      {"epoch: is 51 after 50 steps", [](TrainState& state) { state.epoch = 51; }},
      {"step_in_epoch: is 49 after 50 steps and 2 epochs",
       [](TrainState& state) { state.step_in_epoch = 49; }},
      {"step_in_epoch: is 21, and an epoch of 1400 samples has 21 steps of 64",
       [](TrainState& state) { state.step_in_epoch = 21; }},
      {"best_metric: is nan, and the best step is 40",
       [](TrainState& state) { state.best_metric = std::nan(""); }},
      {"best_metric: is 0.5, and the best step is -1",
       [](TrainState& state) { state.best_step = -1; }},
      {"best_step: is 51 after 50 steps", [](TrainState& state) { state.best_step = 51; }},
      {"best_steps: has step 51 with 0.5 after 50 steps",
       [](TrainState& state) {
         state.best_steps = {{40, 0.6}, {51, 0.5}};
       }},
      {"best_steps: has step -1 with 0.5 after 50 steps",
       [](TrainState& state) {
         state.best_steps = {{-1, 0.5}};
       }},
      {"best_steps: has step 40 with inf after 50 steps",
       [](TrainState& state) {
         state.best_steps = {{40, HUGE_VAL}};
       }},
      {"best_metric: is 5, and top1 is from 0 to 1",
       [](TrainState& state) { state.best_metric = 5; }},
      {"best_metric: is -0.5, and ema/map is from 0 to 1",
       [](TrainState& state) {
         state.best_by = "ema/map";
         state.best_metric = -0.5;
       }},
      {"best_metric: is -2, and perplexity is at least 0",
       [](TrainState& state) {
         state.best_by = "perplexity";
         state.best_metric = -2;
       }},
      {"best_steps: has step 30 with 1.5, and top1 is from 0 to 1",
       [](TrainState& state) {
         state.best_steps = {{30, 1.5}, {40, 0.5}};
       }},
      {"stopping_best: is 2, and top5 is from 0 to 1",
       [](TrainState& state) {
         state.stopping_by = "top5";
         state.stopping_best = 2;
       }},
      {"stopping_best: is 2, and no measure is named",
       [](TrainState& state) { state.stopping_best = 2; }},
      {"plateau_best: is -1, and loss is at least 0",
       [](TrainState& state) {
         state.plateau_by = "loss";
         state.plateau_best = -1;
       }},
      {"plateau_best: is 1, and no measure is named",
       [](TrainState& state) { state.plateau_best = 1; }},
      {"no_better: is 52 after 50 steps", [](TrainState& state) { state.no_better = 52; }},
      {"plateau_bad: is 52 after 50 steps", [](TrainState& state) { state.plateau_bad = 52; }},
      {"plateau_drops: is 52 after 50 steps", [](TrainState& state) { state.plateau_drops = 52; }},
      {"anomaly_window: has step 51 with the loss 1 and the norm 2 after 50 steps",
       [](TrainState& state) {
         state.anomaly_window = {{51, 1, 2}};
       }},
      {"anomaly_window: has step 5 with the loss 1 and the norm -2 after 50 steps",
       [](TrainState& state) {
         state.anomaly_window = {{5, 1, -2}};
       }},
      {"anomaly_steps: is [3, 3], which are not steps in ascending order of 50",
       [](TrainState& state) {
         state.anomaly_steps = {3, 3};
         state.anomalies = 2;
       }},
      {"anomaly_steps: is [3, 51], which are not steps in ascending order of 50",
       [](TrainState& state) {
         state.anomaly_steps = {3, 51};
         state.anomalies = 2;
       }},
      {"anomalies: is 1 of 50 steps",
       [](TrainState& state) {
         state.anomaly_steps = {3, 4};
         state.anomalies = 1;
       }},
      {"anomalies: is 51 of 50 steps", [](TrainState& state) { state.anomalies = 51; }},
      {"skipped_ranges: has an entry that is not the [first, last] step of a range so far",
       [](TrainState& state) {
         state.skipped_ranges = {{5, 4}};
       }},
      {"skipped_ranges: has an entry that is not the [first, last] step of a range so far",
       [](TrainState& state) {
         state.skipped_ranges = {{5, 6}, {6, 7}};
       }},
      {"skipped_ranges: has an entry that is not the [first, last] step of a range so far",
       [](TrainState& state) {
         state.skipped_ranges = {{50, 51}};
       }},
      {"per_device: is 65 of a batch of 64", [](TrainState& state) { state.per_device = 65; }},
      {"trained_s: is inf", [](TrainState& state) { state.trained_s = HUGE_VAL; }},
      {"lost_positions: has an entry that is not [epoch, begin, end, period, first, count] of an "
       "epoch so far",
       [](TrainState& state) {
         state.lost_positions = {{1, 640, 1280, 64, 16}};
       }},
      {"lost_positions: has an entry that is not [epoch, begin, end, period, first, count] of an "
       "epoch so far",
       [](TrainState& state) {
         state.lost_positions = {{3, 640, 1280, 64, 16, 16}};
       }},
      {"lost_positions: has an entry that is not [epoch, begin, end, period, first, count] of an "
       "epoch so far",
       [](TrainState& state) {
         state.lost_positions = {{1, 640, 1280, 64, 16, 49}};
       }},
      {"shard_digests: has 1 numbers, and /shard_sizes 2",
       [](TrainState& state) {
         state.shard_sizes = {700, 700};
         state.shard_digests = {1};
       }},
      {"mesh: is not a mesh of ranks", [](TrainState& state) { state.mesh = {1, 2, 1, 1, 1, 1}; }},
      {"mesh: is not a mesh of ranks",
       [](TrainState& state) {
         state.mesh = {std::int64_t{1} << 40, std::int64_t{1} << 40, 1, 1};
       }},
      {"expert: is 4 of 2 ranks",
       [](TrainState& state) {
         state.world_size = 2;
         state.expert = 4;
       }},
      {"device: has a character that is not printed",
       [](TrainState& state) { state.device = "\x1b[31mcpu"; }},
      {"schedule: has the lr -0.5, where a number from 0 is allowed",
       [](TrainState& state) { state.schedule["lr"] = -0.5; }},
      {"scaler: has the scale \"1\", where a number from 0 is allowed",
       [](TrainState& state) { state.scaler["scale"] = "1"; }},
      {"random: has the seed 7, which is not 16 hexadecimal digits",
       [](TrainState& state) { state.random["seed"] = 7; }},
      {"ema_updates: is 50 after 50 steps, 1 left out",
       [](TrainState& state) { state.ema_updates = 50; }},
      {"swa_updates: is 51 after 50 steps, 1 left out",
       [](TrainState& state) { state.swa_updates = 51; }},
      {"stopping_step: is 51 after 50 steps", [](TrainState& state) { state.stopping_step = 51; }},
      {"plateau_step: is 51 after 50 steps", [](TrainState& state) { state.plateau_step = 51; }},
      {"skipped_steps: is 51 of 50 steps", [](TrainState& state) { state.skipped_steps = 51; }},
      {"trained_s: is -1", [](TrainState& state) { state.trained_s = -1; }},
      {"seen_s: is -1", [](TrainState& state) { state.seen_s = -1; }},
      {"bucket_layout: does not name each of 3 parameters once: 3",
       [](TrainState& state) {
         state.bucket_layout = {{3, 2}, {0}};
       }},
      {"bucket_layout: does not name each of 2 parameters once: 1",
       [](TrainState& state) {
         state.bucket_layout = {{1}, {1}};
       }},
      {"stage_begins: is [1, 3], which are not the first units of the stages of 1 pipeline ranks",
       [](TrainState& state) {
         state.stage_begins = {1, 3};
       }},
      {"stage_begins: is [0, 2, 2], which are not the first units of the stages of 1 pipeline "
       "ranks",
       [](TrainState& state) {
         state.stage_begins = {0, 2, 2};
       }},
      {"stage_begins: is [0, 2, 3], which are not the first units of the stages of 2 pipeline "
       "ranks",
       [](TrainState& state) {
         state.mesh = {2, 1, 1, 1};
         state.stage_begins = {0, 2, 3};
       }},
      {"schedule: is of step 30, and /step is 50",
       [](TrainState& state) { state.schedule["step"] = 30; }},
      {"scaler: is of step 49, and /step is 50",
       [](TrainState& state) { state.scaler["step"] = 49; }},
      {"random: is not an object", [](TrainState& state) { state.random = 1; }},
  };
  for (const auto& [fault, change] : cases) {
    CHECK(fault_of_state(change) == "state.json: /" + fault + kRemedy);
  }
}

TEST_CASE("the samples and the place of a batch that grows are those of its steps") {
  const auto growing = [](TrainState& state) {  // 32, 32, then 64
    state.batch_ramp = {32, 32, 64};
    state.samples = 2 * 32 + 48 * 64;
    state.position = 512;
  };
  CHECK(fault_of_state(growing) == "nothing was thrown");
  const std::vector<std::pair<std::string, std::function<void(TrainState&)>>> cases{
      {"batch_ramp: is not a list of 3 numbers", [](TrainState& state) { state.batch_ramp = {1}; }},
      {"batch_ramp: does not grow",
       [](TrainState& state) {
         state.batch_ramp = {64, 32, 64};
       }},
      {"samples: is 3200, which is not 50 steps of a batch that grows from 32 to 64",
       [](TrainState& state) { state.samples = 3200; }},
      {"samples: is 3136, which is not 1000000000000000000 steps of a batch that grows from 32 to "
       "64",
       [](TrainState& state) { state.step = 1'000'000'000'000'000'000; }},
      {"position: is 255 after 8 steps of an epoch of 1400 samples",
       [](TrainState& state) { state.position = 255; }},
      {"position: is 513 after 8 steps of an epoch of 1400 samples",
       [](TrainState& state) { state.position = 513; }},
      {"position: is 1400 after 25 steps of an epoch of 1400 samples",
       [](TrainState& state) {
         state.position = 1400;
         state.step_in_epoch = 25;
       }},
  };
  for (const auto& [fault, change] : cases) {
    CHECK(fault_of_state([&, then = change](TrainState& state) {
            growing(state);
            then(state);
          }) == "state.json: /" + fault + kRemedy);
  }
}

TEST_CASE("a state behind the end of its own recipe is refused") {
  TrainState state = sensible();
  CHECK_NOTHROW(check_not_past_end(state, {{"steps", 50}}, ""));
  CHECK_NOTHROW(check_not_past_end(state, {{"epochs", 3}}, ""));
  CHECK_NOTHROW(check_not_past_end(state, {{"epochs", 2.4}}, ""));
  CHECK_NOTHROW(check_not_past_end(state, {{"name", "a"}}, ""));
  CHECK(fault_of_end(state, {{"steps", 49}}) ==
        std::string("state.json: /step: is 50 in a training of 49 steps") + kRemedy);
  CHECK(fault_of_end(state, {{"epochs", 2}}) ==
        std::string("state.json: /epoch: is 2 after 8 of its steps, in a training of 2 epochs") +
            kRemedy);
  state.step_in_epoch = 0;
  CHECK_NOTHROW(check_not_past_end(state, {{"epochs", 2}}, ""));
  CHECK_NOTHROW(check_not_past_end(state, {{"epochs", 1.5}}, ""));
  state.epoch = 3;
  CHECK(fault_of_end(state, {{"epochs", 2}}) ==
        std::string("state.json: /epoch: is 3 after 0 of its steps, in a training of 2 epochs") +
            kRemedy);
}
