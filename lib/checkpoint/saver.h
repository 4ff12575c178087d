// Writes a run's checkpoints beside training, which waits for a copy in memory and for nothing
// else.
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
#include "lib/core/disk.h"
#include "lib/core/watched_disk.h"
#include "lib/format/retention.h"

namespace scaletrain::checkpoint {

// A checkpoint that is durable.
struct Saved {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::int64_t bytes = 0;
  double stall_s = 0;  // that training waited, for a copy and for the writes before it
  double write_s = 0;  // from there until it was durable
};

struct SaverOptions {
  std::filesystem::path run;
  format::Retention retention;
  bool beside = true;  // false: save() returns when the checkpoint is durable
};

class Saver {
 public:
  // `beat` is called on the thread that waits, again and again while the disk makes progress.
  Saver(
      core::Disk& disk, SaverOptions options, std::function<void()> beat = [] {});
  // Waits until what was begun is durable.
  ~Saver();

  // Copies `contents` and begins to write them, in the order of the calls. Where two copies are
  // still being written, waits for the first of them.
  void save(const Contents& contents);

  // A checkpoint that has become durable, each once, in their order; nullopt: none has since.
  // Throws what its write threw: that checkpoint is absent, and the next ones are not affected.
  std::optional<Saved> next();

  // Waits until everything that was begun is written. What came of it is next()'s to say.
  void finish();

 private:
  struct Write;    // one that was begun
  struct Outcome;  // of one
  Outcome write(Write& one);
  void run();                                                       // the writing thread's
  void wait(std::unique_lock<std::mutex>& lock, std::size_t most);  // until so few are under way

  SaverOptions options_;
  std::function<void()> beat_;
  std::atomic<bool> made_progress_ = true;  // the disk was asked for something since the last look
  core::WatchedDisk disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Write>> under_way_;  // the oldest first, which is being written
  std::vector<std::unique_ptr<Write>> free_;      // their memory
  std::deque<std::unique_ptr<Outcome>> outcomes_;
  bool ends_ = false;
  std::thread thread_;  // last: uses all of it
};

}  // namespace scaletrain::checkpoint
