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
#include <thread>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/data/loader.h"
#include "lib/data/sample_maker.h"

namespace scaletrain::data {

// The samples of one batch: `count` positions from `position` on.
struct BatchJob {
  std::int64_t epoch = 0, position = 0, count = 0;
};

class ReadAhead {
 public:
  // Batch number `number`, from 0; nullopt behind the last. A pure function, called with a lock
  // held.
  using JobOf = std::function<std::optional<BatchJob>(std::int64_t number)>;

  ReadAhead(SampleSource source, JobOf job_of, int threads, int prefetch, core::BufferPool& pool);
  ~ReadAhead();  // joins the threads when they have finished the few samples at hand

  // The next batch, or nullopt at the end; one caller at a time. Throws what making the batch's
  // first bad sample threw, again and again until seek().
  std::optional<ImageBatch> next();

  // Continues with batch `number`; drops what was read ahead.
  void seek(std::int64_t number);

 private:
  struct Slot;
  struct Chunk;

  void work(SampleMaker& maker);
  std::optional<Chunk> claim();
  bool open_slot();
  void fill(SampleMaker& maker, const Chunk& chunk, std::unique_lock<std::mutex>& lock);
  static ImageBatch batch_of(Slot& slot);

  const SampleSource source_;
  const JobOf job_of_;
  const std::size_t prefetch_;
  core::BufferPool& pool_;

  std::mutex mutex_;  // guards what follows, and the counts of the slots
  std::condition_variable work_there_, batch_there_;
  std::deque<std::shared_ptr<Slot>> slots_;  // the batches from the next one on
  std::int64_t next_number_ = 0;             // of the batch behind them
  bool ended_ = false, stop_ = false;

  std::vector<std::unique_ptr<SampleMaker>> makers_;
  std::vector<std::thread> threads_;
};

}  // namespace scaletrain::data
