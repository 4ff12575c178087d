// The last thing a person reads: how the run went, where its checkpoint is, how to go on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace scaletrain::observe {

struct RunSummary {
  std::string name;                  // of the recipe
  std::string stopped;               // why it ended early ("SIGTERM"); empty: all steps are done
  std::int64_t step = 0;             // optimizer steps done, over all attempts
  double trained_s = 0;              // wall time of them
  double samples_per_s = 0;          // all ranks, mean over this attempt
  std::int64_t skipped_steps = 0;    // left out as not finite
  std::int64_t skipped_samples = 0;  // left out as bad; they are listed in RUN/bad_samples

  struct Best {
    double top1 = 0;  // 0..1
    std::int64_t step = 0;
  };
  struct Test {
    double top1 = 0, top5 = 0;  // 0..1
    std::int64_t count = 0;
  };
  std::optional<Best> best;  // of the validations, none yet: nullopt
  std::optional<Test> test;

  std::string checkpoint;  // newest saved one, empty: none
  std::string run;         // the run's folder, as a person would type it
};

// A few lines, each with its newline:
//
//   digits-resnet18: done, 430 steps in 1m 23s, 512 samples/s
//     best top-1   99.00 % on val at step 387
//     test top-1   98.48 %, top-5 100.00 % (197 samples)
//     checkpoint   runs/digits-resnet18/checkpoints/step-00000430
//     resume       scaletrain resume runs/digits-resnet18
std::string summary_text(const RunSummary& summary);

}  // namespace scaletrain::observe
