// Pictures of a run's folder for the report: its first batch and its newest mistakes.
#pragma once

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// Returns the newest picture of each name in RUN/media (docs/reference/media.md): {"name", "step",
// "columns", "captions", "image"}, where `image` is a data: URL. A picture whose file is missing,
// too large or no PNG is left out.
RunJson pictures_of(const RunRecord& run);

}  // namespace scaletrain::launcher
