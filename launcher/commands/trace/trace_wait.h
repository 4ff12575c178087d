// Waits for the trace files that a running job writes for a request.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace scaletrain::launcher {

// Trace files of a run and the times at which they were written, as they were before a request.
using TracesBefore = std::map<std::string, std::filesystem::file_time_type>;
TracesBefore traces_of(const std::filesystem::path& run);

// Returns the files of the first trace that is not in `before`, in the order of ranks, when all of
// its ranks have written theirs. Looks again after each `pause`, which may throw to give up. Throws
// the errors of observe::read_trace() for a damaged file.
std::vector<std::filesystem::path> await_trace(const std::filesystem::path& run,
                                               const TracesBefore& before,
                                               const std::function<void()>& pause);

}  // namespace scaletrain::launcher
