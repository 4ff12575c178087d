// Predictions in a run's folder for the report: confusion matrix and the most confident mistakes.
#pragma once

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// A list with an object for each RUN/predictions-SET.csv that `scaletrain eval --predictions`
// wrote: {"name": SET, "count", "right", "classes": [names], "confusion": [[samples]], "worst":
// [{"key", "label", "predicted", "probability", "image"}]}. `image` is a data: URL, or null if the
// set's shards are not there. A file with other columns is left out with a warning.
RunJson predictions_of(const RunRecord& run);

}  // namespace scaletrain::launcher
