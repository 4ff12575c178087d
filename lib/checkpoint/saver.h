// Asynchronous checkpoints: training waits only for the copy in memory, before it changes the
// copied tensors. The first checkpoint is read back and compared with memory before it counts, so
// that an optimizer, layout or model whose checkpoints cannot be read is found at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/host_copies.h"
#include "lib/core/clock.h"
#include "lib/core/disk/disk.h"
#include "lib/core/disk/watched_disk.h"
#include "lib/core/housekeeping.h"
#include "lib/format/checkpoint/retention.h"

namespace scaletrain::checkpoint {

// A checkpoint that is durable.
struct Saved {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::int64_t bytes = 0, linked_bytes = 0;  // size of its files; hard-linked part
  // Time the host waited: for communication, for the rest of a copy, and for earlier writes. Time a
  // device waits for its copies is not included.
  double stall_s = 0;
  double write_s = 0;  // time after that until the checkpoint was durable
};

struct SaverOptions {
  std::filesystem::path run;
  format::Retention retention;
  bool beside = true;  // false: save() returns when the checkpoint is durable
  std::shared_ptr<Writers> writers = nullptr;  // set if several ranks write together
  // Handles links, removals and other operations that may fail without ending the run.
  std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>();
  bool incremental = false;  // tensors that did not change are linked (lib/checkpoint/kept_files.h)
  // Called on the writing thread after each durable checkpoint; on ranks other than 0 after each
  // share, where only the step is set. Calls `progress` before each operation that may take long,
  // so that a thread that waits for the write sees that it goes on.
  using Published = std::function<void(const Saved&, const std::function<void()>& progress)>;
  Published published = [](const Saved&, const std::function<void()>&) {};
};

// Saves checkpoints on the writing rank, or on each rank that writes a share. All those ranks call
// save() in the same order: each copies and writes its share, and only rank 0 gets the outcome.
class Saver {
 public:
  // `beat` is called repeatedly on the waiting thread while the disk makes progress.
  Saver(
      core::Disk& disk, SaverOptions options, std::function<void()> beat = [] {});
  // Waits until all saves are durable.
  ~Saver();

  // Copies `contents` (only begins to, if they stand) and starts to write them, in the order of the
  // calls. Waits for the oldest write if two copies are being written, and for all writes if memory
  // is too small for another copy. `since`: when training began to wait.
  void save(const Contents& contents, core::SteadyTime since = core::now());
  // Returns when the tensors given to save() are copied and may change.
  void await_copies();

  // Returns each durable checkpoint once, in order; nullopt if there is no new one. Throws the
  // error of a failed write, whose checkpoint is absent, and core::StorageError for a checkpoint
  // that has lost bytes after its write; the next ones are not affected.
  std::optional<Saved> next();

  // Returns the seconds since the last disk operation of the running write; 0 if no write is
  // running.
  double stands_still_s();

  // Waits until all saves are written, on all ranks. next() returns the outcomes.
  void finish();
  // Like finish(), after training has failed: does not wait long for a rank that is gone.
  void finish_after_failure();

 private:
  struct Write;                                             // a save that has begun
  struct Outcome;                                           // result of a Write
  bool begin_copy(const Contents& contents, Write& write);  // false: not enough memory
  KeptFiles* kept() { return options_.incremental ? &kept_ : nullptr; }
  void write(Write& one);
  void follow(const Contents& share);
  void add(Outcome outcome);
  void run();  // writing thread only
  void wait(std::unique_lock<std::mutex>& lock,
            std::size_t most);  // until `most` are left

  SaverOptions options_;
  std::function<void()> beat_;
  std::atomic<core::SteadyTime> last_operation_ = core::now();  // of the disk
  core::WatchedDisk disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Write>> under_way_;  // oldest first; the first one is being written
  std::vector<std::unique_ptr<Write>> free_;      // finished writes, whose memory is reused
  Write* copied_ = nullptr;  // in under_way_ or free_: await_copies() waits for it
  std::deque<std::unique_ptr<Outcome>> outcomes_;
  KeptFiles kept_;              // writing thread only
  bool has_read_back_ = false;  // used by the writing thread only
  bool ends_ = false;
  bool has_warned_ = false;
  std::thread thread_;  // last member: uses all others
};

}  // namespace scaletrain::checkpoint
