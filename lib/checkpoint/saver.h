// Writes a run's checkpoints beside training, which waits for a copy in memory, before it changes
// what is copied, and for nothing else. The first one is read back and compared with what was in
// memory before it counts: optimizer, layout and model are then known to give checkpoints that can
// be read.
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
  // Time the host waited: for communication, the rest of a copy and earlier writes. A device's own
  // wait for its copies is not included.
  double stall_s = 0;
  double write_s = 0;  // then, until it was durable
};

struct SaverOptions {
  std::filesystem::path run;
  format::Retention retention;
  bool beside = true;  // false: save() returns when the checkpoint is durable
  std::shared_ptr<Writers> writers = nullptr;  // set if several ranks write together
  // Links, removals and what else may fail without harm.
  std::shared_ptr<core::Housekeeping> housekeeping = std::make_shared<core::Housekeeping>();
  bool incremental = false;  // tensors that did not change are linked (lib/checkpoint/kept_files.h)
  // Called behind each that has become durable, and on other ranks than 0 behind each share (of
  // these the step alone is said), on the thread that writes.
  std::function<void(const Saved&)> published = [](const Saved&) {};
};

// Saves checkpoints on the rank that writes, or on each rank that writes its share. All those ranks
// call save() alike: each copies and writes its share, and rank 0 alone has the outcome.
class Saver {
 public:
  // `beat` is called on the thread that waits, again and again while the disk makes progress.
  Saver(
      core::Disk& disk, SaverOptions options, std::function<void()> beat = [] {});
  // Waits until what was begun is durable.
  ~Saver();

  // Copies `contents`, or begins with that where they stand, and begins to write them, in the order
  // of the calls. Waits for the oldest write where two copies are being written, and for all where
  // memory lacks for a copy. Training has waited since `since`.
  void save(const Contents& contents, core::SteadyTime since = core::now());
  // Returns when what was given to save() is copied, and may change.
  void await_copies();

  // The next checkpoint that has become durable, each once, in their order; nullopt: none has.
  // Throws what a write has thrown, whose checkpoint is absent, and core::StorageError for one that
  // has lost bytes after its write; the next ones are not affected.
  std::optional<Saved> next();

  // Seconds since the disk was last asked for something by a write that is under way; 0: none is.
  double stands_still_s();

  // Waits until everything that was begun is written, on all ranks. next() returns the
  // outcomes.
  void finish();
  // Like finish(), after training has failed: does not wait long for a rank that is gone.
  void finish_after_failure();

 private:
  struct Write;                                             // one that was begun
  struct Outcome;                                           // result of a Write
  bool begin_copy(const Contents& contents, Write& write);  // false: memory lacks
  KeptFiles* kept() { return options_.incremental ? &kept_ : nullptr; }
  void write(Write& one);
  void follow(const Contents& share);
  void add(Outcome outcome);
  void run();                                                       // the writing thread's
  void wait(std::unique_lock<std::mutex>& lock, std::size_t most);  // until so few are under way

  SaverOptions options_;
  std::function<void()> beat_;
  std::atomic<core::SteadyTime> last_operation_ = core::now();  // on the disk
  core::WatchedDisk disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Write>> under_way_;  // the oldest first, which is being written
  std::vector<std::unique_ptr<Write>> free_;      // their memory
  Write* copied_ = nullptr;  // in under_way_ or free_: await_copies() waits for it
  std::deque<std::unique_ptr<Outcome>> outcomes_;
  KeptFiles kept_;              // the writing thread's
  bool has_read_back_ = false;  // the writing thread's: one was written and read back
  bool ends_ = false;
  bool has_warned_ = false;
  std::thread thread_;  // last: uses all of it
};

}  // namespace scaletrain::checkpoint
