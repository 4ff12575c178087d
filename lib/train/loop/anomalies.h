// Anomalous steps of a run: counts them, finds their cause, and does what the recipe's `anomaly`
// says. Without that section, steps that are not finite are counted, and ten in a row end the run.
#pragma once

#include <optional>

#include "lib/train/loop/reporter.h"
#include "lib/train/loop/saves.h"
#include "lib/train/rules/saturation.h"
#include "lib/train/rules/spike_bounds.h"
#include "lib/train/run/run.h"
#include "lib/train/run/step.h"

namespace scaletrain::train {

class Anomalies {
 public:
  Anomalies(Run& run, Reporter& reporter, StepRunner& steps);

  // Returns the bounds of the next step; infinite without /anomaly.
  SpikeBounds bounds() const;

  // Counts a step whose result is known; collective if it is anomalous. Throws core::DivergedError
  // if training ends with it.
  void count(const StepResult& result);

  // True if the step that was counted last asks for a rollback.
  bool rolls_back() const { return rolls_back_; }
  // Restores weights and state of the newest checkpoint and continues at the current step; false if
  // there is none, and only the step was left out. No step is queued. Collective.
  bool roll_back(Saves& saves);

 private:
  void count_anomalous(const recipe::Anomaly& anomaly, const StepResult& result);
  AnomalyReport report_of(const recipe::Anomaly& anomaly, const StepResult& result);

  Run& run_;
  Reporter& reporter_;
  StepRunner& steps_;
  Saturation saturation_;
  int skipped_in_a_row_ = 0;  // without those of a loss scale that was too high
  bool rolls_back_ = false;
};

}  // namespace scaletrain::train
