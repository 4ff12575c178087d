// Checks of the machine: cores, limits, shared memory, load, clock, disk.
#pragma once

#include <cstdint>
#include <filesystem>

#include "launcher/commands/doctor/finding.h"

namespace scaletrain::launcher {

inline constexpr std::int64_t kNoLimit = -1;

// RLIMIT_NOFILE, RLIMIT_NPROC and RLIMIT_MEMLOCK as values (bytes for the last, kNoLimit for none),
// judged for a training run; `gpus` decides how memlock counts.
Finding check_open_files(std::int64_t soft, std::int64_t hard);
Finding check_processes(std::int64_t soft);
Finding check_locked_memory(std::int64_t soft, bool gpus);
// Checks these limits of this process.
Findings check_limits(bool gpus);

// Checks that /dev/shm exists and is writable, and its size.
Finding check_shared_memory(const std::filesystem::path& folder = "/dev/shm");

// Compares the runnable threads of other processes (launcher/platform/machine_load.h) with `cores`.
Finding check_load(double busy, int cores);

// Checks the date, and that the kernel reports a synchronized clock.
Finding check_clock();

// Checks the disk of `output`, or of its nearest existing parent: writes, syncs and renames a file,
// and syncs the folder; tries symbolic and hard links, and names the substitute that runs use
// without them; checks free space and the file's time against this machine's clock. Leaves nothing
// behind.
Findings check_disk(const std::filesystem::path& output);

}  // namespace scaletrain::launcher
