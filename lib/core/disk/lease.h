// Lease: a run's folder has one owner, which keeps updating a small file.
//
// lease.json holds {"host","boot_id","pid_namespace","pid","started","attempt","beat"}; `started`
// is the process's start time in clock ticks since boot, so that a number used again is not
// mistaken for its owner. A lease of a process of this host, boot and process namespace (containers
// may share the first two) is judged at once: its process lives or not. Any other is stale when it
// has not changed for `stale_after`, by the observer's own steady clock, so that two machines'
// clocks are never compared. The folder may be shared over a network.
//
// Competing processes create the file atomically, so one of them wins: by link(2), or with O_EXCL
// on a file system without hard links (lib/core/disk/exclusive_file.h).
//
// The owner also holds a lock on the folder, which ends with its process. If a user removes the
// file, the lock still refuses other processes of this machine, and the next renewal writes the
// file and the folder again.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/core/descriptor.h"

namespace scaletrain::core {

// Contents of a lease file for an observer.
struct LeaseView {
  std::string host{};
  int pid = 0;
  int attempt = 0;
  std::optional<bool> alive{};  // nullopt: of another host, boot or container, not seen from here
  double age_s = 0;             // since its last beat, by the file's time
};

// Returns the owner of the lease `file`; nullopt if the file is missing or cannot be read.
std::optional<LeaseView> view_lease(const std::filesystem::path& file);

class Lease {
 public:
  static constexpr std::chrono::seconds kBeatEvery{10};
  static constexpr std::chrono::seconds kStaleAfter{60};

  // Takes the lease `file`; waits while it must watch another host's. Throws core::UsageError
  // naming the host and pid of a live owner, core::StorageError where the file cannot be written.
  Lease(std::filesystem::path file, int attempt,
        std::chrono::milliseconds stale_after = kStaleAfter);
  ~Lease();  // removes the file while it is ours
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  // Renews the lease; call it every kBeatEvery. Returns false if another owner has taken it,
  // because this process was suspended for longer than the lease lasts. A failed write returns
  // true.
  bool beat();

 private:
  std::string text() const;
  void hold_folder();

  std::filesystem::path file_;
  Descriptor folder_;  // locked
  int attempt_;
  long beat_ = 0;
  std::string written_;      // contents of the file while the lease is ours
  bool has_warned_ = false;  // has warned that the lease cannot be renewed
};

}  // namespace scaletrain::core
