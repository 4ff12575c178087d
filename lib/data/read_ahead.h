// Batches that threads fill ahead of their reader, handed over in order whichever was ready first.
//
// Threads share the samples of the earliest unfinished batch, so that the first batch comes as soon
// as it can; at most `prefetch` batches are held.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/data/loader.h"

namespace scaletrain::data {

// A sample that was made, or could not be.
struct Made {
  bool present = true;  // false: the batch has no sample at this position
  std::int64_t label = 0;
  std::uint64_t digest = 0;
  std::vector<BadSample> skipped;  // tried before it
  StageTimes stages;
};

// Makes samples; with working memory of its own, for one thread.
class Maker {
 public:
  virtual ~Maker() = default;

  // Writes the sample at `position` of `epoch` to `bytes`. Throws core::DataError.
  virtual Made make(std::int64_t epoch, std::int64_t position, std::span<std::uint8_t> bytes) = 0;
};

class ReadAhead {
 public:
  // Batch number `number`, from 0; nullopt behind the last. Called with a lock held.
  using JobOf = std::function<std::optional<BatchJob>(std::int64_t number)>;

  // One thread for each of `makers`, from the first seek() or next() on; a sample takes
  // `sample_bytes`.
  ReadAhead(std::vector<std::unique_ptr<Maker>> makers, std::int64_t sample_bytes, JobOf job_of,
            int prefetch, core::BufferPool& pool);
  ~ReadAhead();  // joins the threads when they have finished the few samples at hand

  // The next batch, or nullopt at the end; one caller at a time. Throws what making the batch's
  // first bad sample, or planning it, threw, again and again until seek().
  std::optional<ImageBatch> next();

  // Goes on reading ahead from batch `number`; drops what was read before.
  void seek(std::int64_t number);

 private:
  struct Slot;
  struct Chunk;

  void start_threads();
  void end_threads();
  void work(Maker& maker);
  std::optional<Chunk> claim();
  bool open_slot();
  void fill(Maker& maker, const Chunk& chunk, std::unique_lock<std::mutex>& lock);
  ImageBatch batch_of(Slot& slot) const;
  std::int64_t close_gaps(Slot& slot) const;

  const std::size_t sample_bytes_;
  const JobOf job_of_;
  const std::size_t prefetch_;
  core::BufferPool& pool_;

  std::mutex mutex_;  // guards what follows, and the counts of the slots
  std::condition_variable work_there_, batch_there_;
  std::deque<std::shared_ptr<Slot>> slots_;  // the batches from the next one on
  std::int64_t next_number_ = 0;             // of the batch behind them
  bool ended_ = false, stop_ = false;

  std::vector<std::unique_ptr<Maker>> makers_;
  std::vector<std::thread> threads_;
};

}  // namespace scaletrain::data
