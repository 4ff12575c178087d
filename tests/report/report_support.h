// An evaluation of three classes for the tests of what is shown of one.
#pragma once

#include <ATen/ops/tensor.h>

#include "lib/report/evaluation_text.h"

namespace scaletrain::report {

// "cat" is right once and taken for "d<g" twice, that is right once; a third class has no samples.
inline Predictions::All some_predictions() {
  Predictions::All all;
  all.logits = at::tensor({2.0F, 1.0F, 0.0F, 0.0F, 3.0F, 0.0F, 0.0F, 1.0F, 0.0F, 0.0F, 2.0F, 1.0F})
                   .view({4, 3});
  all.labels = at::tensor({0, 0, 0, 1}).to(at::kLong);
  all.predictions = predict(all.logits, all.labels, {0, 1, 2, 3}, kMostTop);
  return all;
}

inline Evaluation some_evaluation() {
  static const recipe::Measure kTop1{.name = "top1",
                                     .label = "top-1",
                                     .better = recipe::Measure::Better::kHigher,
                                     .kind = recipe::Measure::Kind::kShare};
  return {.checkpoint = "runs/a/checkpoints/step-00000010",
          .set = "test",
          .step = 10,
          .count = 4,
          .skipped = 1,
          .counted = "samples",
          .measures = {{&kTop1, 0.5}},
          .classes = make_class_report(some_predictions(), 3, {"cat", "d<g"})};
}

}  // namespace scaletrain::report
