#include "lib/train/rules/anomaly.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace scaletrain::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

recipe::Anomaly with(const std::string& policy, std::int64_t window = 4, std::int64_t max = 2) {
  recipe::Anomaly anomaly;
  anomaly.policy = policy;
  anomaly.window = window;
  anomaly.max = max;
  return anomaly;
}

// Counts the next step.
void count(const recipe::Anomaly& anomaly, double loss, bool anomalous, format::TrainState& state) {
  ++state.step;
  count_step(anomaly, {state.step, loss, 2 * loss, anomalous}, state);
}

}  // namespace

TEST_CASE(
    "finite steps are measures, one more than the window; those that are not finite are none") {
  const recipe::Anomaly anomaly = with("skip");
  format::TrainState state;
  for (const double loss : {1.0, 2.0, kNan, 4.0, 5.0, 6.0, 7.0}) {
    count(anomaly, loss, std::isnan(loss), state);
  }
  const std::vector<format::StepMeasure> kept{
      {2, 2, 4}, {4, 4, 8}, {5, 5, 10}, {6, 6, 12}, {7, 7, 14}};
  CHECK((state.anomaly_window == kept));
  CHECK(state.anomalies == 1);
  CHECK(state.anomaly_steps == std::vector<std::int64_t>{3});
  CHECK(next_bounds(anomaly, state) == spike_bounds(state.anomaly_window, 8, 4, 6));
}

TEST_CASE("training ends with one anomalous step more than allowed within the window") {
  const recipe::Anomaly anomaly = with("skip");
  format::TrainState state;
  for (int i = 0; i < 2; ++i) {
    count(anomaly, 1, true, state);
    CHECK(anomaly_end(anomaly, state, state.step).empty());
  }
  count(anomaly, 1, false, state);
  count(anomaly, 1, true, state);
  CHECK(anomaly_end(anomaly, state, state.step) ==
        "3 of the last 4 steps were anomalous, more than /anomaly/max");
  count(anomaly, 1, false, state);
  count(anomaly, 1, false, state);
  count(anomaly, 1, true, state);  // step 7; of steps 4 to 7 two
  CHECK(anomaly_end(anomaly, state, state.step).empty());
  CHECK(state.anomaly_steps == std::vector<std::int64_t>{4, 7});
  CHECK(state.anomalies == 4);
  CHECK(anomaly_end(with("stop"), state, state.step) ==
        "the step is anomalous, and /anomaly/policy is stop");
}

TEST_CASE("the learning rate is reduced from the step after the next one on") {
  const recipe::Anomaly anomaly = with("reduce_lr");
  format::TrainState state;
  count(anomaly, 1, true, state);
  CHECK(reduced_lr(anomaly, state, 0.8) == 0.8);  // the next step may be queued already
  count(anomaly, 1, false, state);
  CHECK(reduced_lr(anomaly, state, 0.8) == 0.4);
  count(anomaly, 1, true, state);
  CHECK(reduced_lr(anomaly, state, 0.8) == 0.4);
  for (int i = 0; i < 9; ++i) count(anomaly, 1, false, state);  // longer than the window
  CHECK(reduced_lr(anomaly, state, 0.8) == 0.2);
  CHECK(reduced_lr(with("skip"), state, 0.8) == 0.8);
  CHECK(reduced_lr(std::nullopt, state, 0.8) == 0.8);
}

TEST_CASE("a rollback keeps the step and takes what belongs to the weights from the checkpoint") {
  format::TrainState now, then;
  then.step = 10;
  then.ema_updates = 9;
  then.skipped_steps = 1;
  then.anomaly_window = {{9, 1, 1}, {10, 1, 1}};
  then.skipped_ranges = {{3, 4}};
  now = then;
  now.step = 14;
  now.samples = 56;
  now.ema_updates = 11;
  now.skipped_steps = 2;
  now.anomalies = 1;
  now.anomaly_steps = {14};
  now.anomaly_window = {{11, 9, 9}};
  const format::TrainState state = rolled_back(now, then);
  CHECK(state.step == 14);
  CHECK(state.samples == 56);
  CHECK(state.ema_updates == 9);
  CHECK(state.skipped_steps == 5);  // steps 11 to 14
  CHECK(state.anomaly_steps == std::vector<std::int64_t>{14});
  CHECK((state.anomaly_window == then.anomaly_window));
  CHECK(state.skipped_ranges == std::vector<std::vector<std::int64_t>>{{3, 4}, {11, 14}});

  // The save after that one failed: the next rollback goes back as far, over one longer range.
  format::TrainState later = state;
  later.step = 20;
  CHECK(rolled_back(later, then).skipped_ranges ==
        std::vector<std::vector<std::int64_t>>{{3, 4}, {11, 20}});
}

TEST_CASE("without the section a resume drops its counts, and keeps the skipped ranges") {
  format::TrainState state;
  state.step = 5;
  count(with("skip"), 1, true, state);
  state.skipped_ranges = {{2, 3}};
  format::TrainState kept = state;
  keep_anomalies_of(with("skip"), kept);
  CHECK(kept.anomalies == 1);
  keep_anomalies_of(std::nullopt, state);
  CHECK(state.anomaly_window.empty());
  CHECK(state.anomaly_steps.empty());
  CHECK(state.anomalies == 0);
  CHECK(state.skipped_ranges.size() == 1);
}

}  // namespace scaletrain::train
