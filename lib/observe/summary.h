// Closing summary of a run: its result, its checkpoint, and how to continue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/observe/run_times.h"
#include "lib/recipe/catalog/task.h"

namespace scaletrain::observe {

struct RunSummary {
  std::string name;             // recipe's name
  std::string stopped;          // reason for an interruption ("SIGTERM"); "": the run is complete
  std::string early = {};       // reason for an early end; "": all steps were taken
  std::int64_t step = 0;        // optimizer steps done, over all attempts
  double trained_s = 0;         // wall time of those steps
  double samples_per_s = 0;     // all ranks, mean over this attempt
  double tokens_per_s = 0;      // language model: shown instead of samples_per_s; 0: none
  std::int64_t peak_bytes = 0;  // memory of the rank that needed most; 0: unknown
  std::int64_t skipped_steps = 0;          // steps skipped because of non-finite values
  std::int64_t skipped_samples = 0;        // bad samples skipped; listed in RUN/bad_samples
  std::int64_t empty_steps = 0;            // in this attempt: steps whose targets were all masked
  std::int64_t comparisons = 0;            // in this attempt: of replicas (recipe's integrity)
  std::int64_t differences = 0;            // those in which replicas differed
  std::int64_t housekeeping_failures = 0;  // failures that did not end the run (core::Housekeeping)
  std::string weights_differences = {};    // between the weights it started from and the recipe
  std::string model_speed = {};            // model_speed_text(); "": not counted
  std::vector<std::string> slow = {};      // causes and remedies (lib/observe/slow_causes.h)
  RunTimes times = {};                     // wall time 0: not shown

  struct Best {
    recipe::Measured measured;
    std::int64_t step = 0;
  };
  struct Test {
    std::vector<recipe::Measured> measures;
    std::int64_t count = 0;
    std::string counted;    // unit: "samples"
    std::int64_t step = 0;  // step of the tested model
  };
  std::optional<Best> best;  // best validation; nullopt: none yet
  std::optional<Test> test;

  std::string checkpoint;  // newest saved checkpoint; "": none
  std::string run;         // the run's folder, for use in a command
  std::string resume;      // command that resumes the run; shown if it was interrupted
};

// A few lines, each with its newline:
//
//   digits-resnet18: done, 430 steps in 1m 23s, 512 samples/s
//     best top-1   99.00 % on val at step 387
//     test top-1   98.48 %, top-5 100.00 %, loss 0.0812 (197 samples, step 387)
//     checkpoint   runs/digits-resnet18/checkpoints/step-00000430
//     next         scaletrain report runs/digits-resnet18
//
// A run that was stopped has the command that resumes it: "resume       scaletrain resume
// runs/...".
std::string summary_text(const RunSummary& summary);

// Where the wall time went: goodput, then the rows from 0.5 % on, the largest first, two a line:
//
//   time         1m 23s in 1 attempt, goodput 91.2 %
//                backward              45.1 %   forward               28.6 %
//                optimizer             12.5 %   start-up               6.2 %
std::string times_text(const RunTimes& times);

}  // namespace scaletrain::observe
