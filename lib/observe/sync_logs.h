// Flushes the log files of a run to the disk, so that a power cut loses no line up to the newest
// checkpoint.
#pragma once

#include <filesystem>
#include <functional>

#include "lib/core/housekeeping.h"

namespace scaletrain::observe {

// Calls fsync(2) on metrics.jsonl, journal.jsonl and console.log of the run's folder, from any
// thread, while others append. A failure is a warning, counted and not tried again: after a failed
// fsync the kernel drops the lines, and the next call succeeds without them. Missing files are
// skipped; their writer warns about them (lib/observe/line_writer.h). `progress` is called before
// each file, since a sync may take seconds.
void sync_logs(
    const std::filesystem::path& run, core::Housekeeping& housekeeping,
    const std::function<void()>& progress = [] {});

}  // namespace scaletrain::observe
