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
#include "lib/data/loader/batch.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/data/order/batch_job.h"

namespace scaletrain::data {

// A sample that was made, or could not be.
struct Made {
  bool present = true;       // false: the batch has no sample at this position
  std::int64_t targets = 1;  // terms that the loss sums up
  std::uint64_t digest = 0;
  std::vector<BadSample> skipped;  // tried before it
  StageTimes stages;
};

// Memory of one sample in a batch; make() writes it.
class Row {
 public:
  Row(const Columns& columns, std::int64_t row) : columns_(columns), row_(row) {}
  template <class T>
  std::span<T> values(std::size_t column) const {
    return columns_.values<T>(column, row_);
  }

 private:
  const Columns& columns_;
  std::int64_t row_;
};

// Makes samples; with working memory of its own, for one thread.
class Maker {
 public:
  virtual ~Maker() = default;

  // Writes the sample at `position` of `epoch` to `row`. Throws core::DataError.
  virtual Made make(std::int64_t epoch, std::int64_t position, const Row& row) = 0;
};

class ReadAhead {
 public:
  // Batch number `number`, from 0; nullopt after the last. Called with a lock held.
  using JobOf = std::function<std::optional<BatchJob>(std::int64_t number)>;
  using LayoutOf = std::function<std::vector<Column>(const BatchJob& job)>;

  // One thread for each of `makers`, from the first seek() or next() on; `layout_of` is called with
  // a lock held.
  ReadAhead(std::vector<std::unique_ptr<Maker>> makers, LayoutOf layout_of, JobOf job_of,
            int prefetch, core::BufferPool& pool);
  // Overload for batches of one layout.
  ReadAhead(std::vector<std::unique_ptr<Maker>> makers, std::vector<Column> layout, JobOf job_of,
            int prefetch, core::BufferPool& pool);
  ~ReadAhead();  // joins the threads after their current samples

  // The next batch, or nullopt at the end; one caller at a time. Throws what making the batch's
  // first bad sample, or planning it, threw, again and again until seek().
  std::optional<Batch> next();

  // Continues with batch `number`; drops the batches read before.
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
  static Batch batch_of(Slot& slot);

  const LayoutOf layout_of_;
  const JobOf job_of_;
  const std::size_t prefetch_;
  core::BufferPool& pool_;

  std::mutex mutex_;  // guards what follows, and the counts of the slots
  std::condition_variable work_there_, batch_there_;
  std::deque<std::shared_ptr<Slot>> slots_;  // the batches from the next one on
  std::int64_t next_number_ = 0;             // number of the batch after `slots_`
  bool ended_ = false, stop_ = false;

  std::vector<std::unique_ptr<Maker>> makers_;
  std::vector<std::thread> threads_;
};

// The batches of a ReadAhead as a BatchStream.
class ReadAheadStream : public BatchStream {
 public:
  // `source`: what the makers and the jobs refer to; kept until the threads have ended.
  // `plan`: nullptr of an evaluation.
  ReadAheadStream(std::shared_ptr<const void> source, std::unique_ptr<ReadAhead> batches,
                  const ReaderSlice& slice, std::shared_ptr<const core::StepPlan> plan)
      : source_(std::move(source)),
        batches_(std::move(batches)),
        slice_(slice),
        plan_(std::move(plan)) {}

  std::optional<Batch> next() override { return batches_->next(); }
  void seek(Position position) override {
    const std::int64_t step = plan_ ? plan_->first_step(position.epoch) + position.step : 0;
    batches_->seek(plan_ ? first_job(slice_, *plan_, step) : 0);
  }
  std::int64_t steps_per_epoch() const override { return plan_ ? plan_->steps_per_epoch() : 0; }
  std::shared_ptr<const core::StepPlan> growing() const override {
    return slice_.ramp ? plan_ : nullptr;
  }

 private:
  std::shared_ptr<const void> source_;
  std::unique_ptr<ReadAhead> batches_;
  ReaderSlice slice_;
  std::shared_ptr<const core::StepPlan> plan_;
};

}  // namespace scaletrain::data
