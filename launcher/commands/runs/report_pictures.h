// Pictures of a run's folder for the report: its first batch and its newest mistakes.
#pragma once

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// Of RUN/media (docs/reference/media.md) the newest picture of each name: {"name", "step",
// "columns", "captions", "image"}, where `image` is a data: URL. One whose file is missing, too
// large or no PNG is left out.
RunJson pictures_of(const RunRecord& run);

}  // namespace scaletrain::launcher
