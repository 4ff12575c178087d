// Checks of what the machine grants: cores, limits, memory that is shared, the clock, the disk.
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
// The three of this process.
Findings check_limits(bool gpus);

// /dev/shm: there, writable, its size.
Finding check_shared_memory(const std::filesystem::path& folder = "/dev/shm");

// Threads of others that run or wait for a core (launcher/platform/machine_load.h), against
// `cores`.
Finding check_load(double busy, int cores);

// The date, and whether the kernel knows of something that keeps it right.
Finding check_clock();

// In `output`, or in the nearest folder above it that is there: a file is written, synced, renamed
// and the folder synced; symbolic and hard links, and what runs use without them; free space; the
// time of the file against this machine's clock. Leaves nothing behind.
Findings check_disk(const std::filesystem::path& output);

}  // namespace scaletrain::launcher
