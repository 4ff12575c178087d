#include "launcher/commands/doctor/machine.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <span>
#include <string>

#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/error.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr double kMiB = 1 << 20;
constexpr double kGiB = 1 << 30;

// A run has streams, shards and sockets open: some hundred descriptors with eight workers.
constexpr std::int64_t kFewFiles = 256, kEnoughFiles = 4096;
// A worker has some tens of threads, and each counts.
constexpr std::int64_t kFewProcesses = 256, kEnoughProcesses = 4096;
constexpr std::int64_t kEnoughSharedBytes = 1 << 30;
constexpr std::int64_t kFewDiskBytes = 64 << 20, kEnoughDiskBytes = 10LL << 30;
constexpr std::size_t kProbeBytes = 4 << 20;
constexpr double kBusyShare = 0.1;  // share of the cores; all ranks wait for the slowest one
constexpr double kClockSkewS = 5;
constexpr double kFirstSensibleTime = 1704067200;  // 2024

std::int64_t as_limit(rlim_t value) {
  return value == RLIM_INFINITY ? kNoLimit : static_cast<std::int64_t>(value);
}

rlimit limit_of(int resource) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit;
}

std::string shown_limit(std::int64_t value) {
  return value == kNoLimit ? "no limit" : std::to_string(value);
}

// The nearest folder that is there.
fs::path existing_folder(fs::path path) {
  std::error_code none;
  path = fs::absolute(path, none);
  while (!fs::is_directory(path, none) && path.has_relative_path()) path = path.parent_path();
  return path;
}

// Performs the file operations of a checkpoint; returns the time by the file system's clock.
double probe(const fs::path& folder) {
  core::Disk& disk = core::system_disk();
  const fs::path file = folder / fmt::format(".scaletrain-doctor.{}", getpid());
  struct Removal {
    fs::path file;
    ~Removal() {
      std::error_code none;
      fs::remove(file, none);
      fs::remove(fs::path(file) += ".tmp", none);
    }
  } removal{file};
  const std::string bytes(kProbeBytes, 'x');
  {
    const auto out = disk.create(fs::path(file) += ".tmp");
    out->write(std::as_bytes(std::span(bytes)));
    out->sync();
  }
  disk.rename(fs::path(file) += ".tmp", file);
  disk.sync_folder(folder);
  struct stat status {};
  stat(file.c_str(), &status);
  return static_cast<double>(status.st_mtim.tv_sec);
}

// Returns the errno of making a link of that kind to `file`; 0 if it works. Removes the link.
int try_link(int (*make)(const char*, const char*), const fs::path& file, const char* ending) {
  const fs::path link = fs::path(file) += ending;
  const int error = make(file.c_str(), link.c_str()) == 0 ? 0 : errno;
  unlink(link.c_str());
  return error;
}

// A run works without links; the finding names the substitute.
Finding check_links(const fs::path& folder) {
  const fs::path file = folder / fmt::format(".scaletrain-doctor.{}", getpid());
  try {
    core::system_disk().create(file);
  } catch (const core::StorageError& error) {
    return failure("disk's links", fmt::format("{}: {}", error.place(), error.found()),
                   "choose another folder: scaletrain doctor --output FOLDER");
  }
  const int soft = try_link(symlink, file, ".soft"), hard = try_link(link, file, ".hard");
  unlink(file.c_str());
  if (soft == 0 && hard == 0) return well("disk's links", "symbolic and hard links can be made");
  std::string found, remedy;
  const auto add = [](std::string& text, const std::string& more) {
    text += (text.empty() ? "" : "; ") + more;
  };
  if (soft != 0) {
    add(found, "no symbolic links: " + core::errno_text(soft));
    add(remedy, "latest and best will be files that hold the name of a checkpoint");
  }
  if (hard != 0) {
    add(found, "no hard links: " + core::errno_text(hard));
    add(remedy,
        "the run's lock will be made with O_EXCL, and checkpoint.incremental will write all files");
  }
  return warning("disk's links", found, remedy);
}

}  // namespace

Finding check_open_files(std::int64_t soft, std::int64_t hard) {
  const std::string found = fmt::format("{} (hard limit {})", shown_limit(soft), shown_limit(hard));
  const char* const remedy =
      "raise it before a launch: ulimit -n 65536, or LimitNOFILE of the service";
  if (soft != kNoLimit && soft < kFewFiles) return failure("open files", found, remedy);
  if (soft != kNoLimit && soft < kEnoughFiles) return warning("open files", found, remedy);
  return well("open files", found);
}

Finding check_processes(std::int64_t soft) {
  const std::string found = shown_limit(soft);
  const char* const remedy =
      "raise it before a launch: ulimit -u 65536, or TasksMax of the service";
  if (soft != kNoLimit && soft < kFewProcesses) return failure("processes", found, remedy);
  if (soft != kNoLimit && soft < kEnoughProcesses) return warning("processes", found, remedy);
  return well("processes", found);
}

Finding check_locked_memory(std::int64_t soft, bool gpus) {
  if (soft == kNoLimit) return well("locked memory", shown_limit(soft));
  const std::string found = fmt::format("{:.0f} MiB", static_cast<double>(soft) / kMiB);
  if (!gpus) return well("locked memory", found);
  return warning("locked memory", found,
                 "InfiniBand needs more: ulimit -l unlimited, or LimitMEMLOCK of the service");
}

Findings check_limits(bool gpus) {
  const rlimit files = limit_of(RLIMIT_NOFILE);
  return {check_open_files(as_limit(files.rlim_cur), as_limit(files.rlim_max)),
          check_processes(as_limit(limit_of(RLIMIT_NPROC).rlim_cur)),
          check_locked_memory(as_limit(limit_of(RLIMIT_MEMLOCK).rlim_cur), gpus)};
}

Finding check_shared_memory(const fs::path& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0 || access(folder.c_str(), W_OK) != 0) {
    return failure("shared memory", fmt::format("{}: {}", folder.string(), core::errno_text(errno)),
                   "mount a tmpfs there; in a container: --ipc=host or --shm-size=8g");
  }
  const auto free = static_cast<std::int64_t>(status.f_bavail * status.f_frsize);
  const std::string found = fmt::format("{:.2f} GiB free", static_cast<double>(free) / kGiB);
  if (free >= kEnoughSharedBytes) return well("shared memory", found);
  return warning("shared memory", found,
                 "NCCL and the data loaders of other programs use it: --shm-size=8g, or clear it");
}

Finding check_load(double busy, int cores) {
  const std::string found = fmt::format("{:.1f} threads run or wait on {} cores", busy, cores);
  if (busy < 1 || busy < kBusyShare * cores) return well("load", found);
  return warning(
      "load", found,
      "workers would share cores with other processes, and all ranks wait for the slowest one: "
      "wait until these have ended, or use other cores (taskset, --numa-binding)");
}

Finding check_clock() {
  const double time = core::unix_time();
  if (time < kFirstSensibleTime) {
    return failure("clock", fmt::format("says {:.0f} s since 1970", time),
                   "set it: certificates, logs and object stores need the right time");
  }
  timex state{};
  if (adjtimex(&state) == TIME_ERROR || (state.status & STA_UNSYNC) != 0) {
    return warning(
        "clock", "the kernel reports no time synchronization",
        "run chrony or systemd-timesyncd on this machine (a container has its host's clock)");
  }
  return well("clock", fmt::format("right to {:.3f} s", static_cast<double>(state.maxerror) / 1e6));
}

Findings check_disk(const fs::path& output) {
  const fs::path folder = existing_folder(output);
  Findings findings;
  const core::SteadyTime start = core::now();
  double file_time = 0;
  try {
    file_time = probe(folder);
  } catch (const core::Error& error) {
    return {failure("disk", fmt::format("{}: {}", error.place(), error.found()),
                    "free space, or choose another folder: scaletrain doctor --output FOLDER")};
  }
  const double seconds = core::seconds_since(start);
  findings.push_back(well("disk", fmt::format("{}: 4 MiB written, synced and renamed in {:.3f} s",
                                              folder.string(), seconds)));
  findings.push_back(check_links(folder));
  const double skew = file_time - core::unix_time();
  if (std::abs(skew) > kClockSkewS) {
    findings.push_back(warning("disk's clock", fmt::format("{:.0f} s from this machine's", skew),
                               "synchronize both clocks with the same server"));
  }
  const std::int64_t free = core::system_disk().free_bytes(folder);
  const std::string space = fmt::format("{:.1f} GiB free", static_cast<double>(free) / kGiB);
  const char* const remedy = "checkpoints of one run may need more: clear the disk, or keep fewer";
  if (free < kFewDiskBytes) {
    findings.push_back(failure("disk space", space, remedy));
  } else if (free < kEnoughDiskBytes) {
    findings.push_back(warning("disk space", space, remedy));
  } else {
    findings.push_back(well("disk space", space));
  }
  return findings;
}

}  // namespace scaletrain::launcher
