// Accuracy and loss over a whole set, from sums and counts of all ranks: each sample counts once.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/core/beat.h"
#include "lib/core/signals.h"
#include "lib/data/loader.h"
#include "lib/dist/group.h"
#include "lib/input/images.h"
#include "lib/nn/loss.h"
#include "lib/nn/model.h"
#include "lib/precision/precision.h"

namespace scaletrain::train {

struct EvalResult {
  double loss = 0;            // mean over the samples
  double top1 = 0, top5 = 0;  // 0..1; with fewer than five classes top5 is 1
  std::int64_t count = 0;
  std::int64_t skipped = 0;                  // bad samples of all ranks
  std::vector<data::BadSample> bad_samples;  // this rank's
  // The strongest reason that cut it short on any rank; then the rest means nothing.
  core::StopReason stop = core::StopReason::kNone;
};

// Runs the model in evaluation mode over every batch of `loader` from its start, and puts it back
// into training mode. Ranks may have different numbers of batches: only the sums are exchanged. A
// stop that any rank was asked for cuts it short on all.
EvalResult evaluate(nn::Model& model, const nn::Loss& loss, precision::Precision& precision,
                    const input::ImageInput& input, data::EvalLoader& loader, dist::Group& group,
                    core::Beat& beat);

}  // namespace scaletrain::train
