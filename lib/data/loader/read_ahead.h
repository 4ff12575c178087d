// Fills batches ahead of their reader with several threads and returns them in order.
//
// All threads work on the earliest unfinished batch, so that the first batch is ready as soon as
// possible; at most `prefetch` batches are in memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lib/core/buffer.h"
#include "lib/core/clock.h"
#include "lib/data/loader/batch.h"
#include "lib/data/loader/batch_stream.h"
#include "lib/data/loader/thread_search.h"
#include "lib/data/order/batch_job.h"

namespace scaletrain::data {

// Result of making a sample.
struct Made {
  bool present = true;       // false: the batch has no sample at this position
  std::int64_t targets = 1;  // number of loss terms
  std::uint64_t digest = 0;
  std::vector<BadSample> skipped;  // bad samples that were tried first
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

// Makes samples. Has working memory of its own; used by one thread.
class Maker {
 public:
  virtual ~Maker() = default;

  // Writes the sample at `position` of `epoch` to `row`. Throws core::DataError.
  virtual Made make(std::int64_t epoch, std::int64_t position, const Row& row) = 0;
};

class ReadAhead {
 public:
  // Returns the plan of batch `number`, from 0; nullopt after the last. Called with a lock held.
  using JobOf = std::function<std::optional<BatchJob>(std::int64_t number)>;
  using LayoutOf = std::function<std::vector<Column>(const BatchJob& job)>;

  // Starts one thread for each of `makers` at the first seek() or next(). `layout_of` is called
  // with a lock held. `search`: uses as many of the makers and as much read-ahead as it says;
  // there are most().threads makers.
  ReadAhead(std::vector<std::unique_ptr<Maker>> makers, LayoutOf layout_of, JobOf job_of,
            int prefetch, core::BufferPool& pool,
            std::optional<ThreadSearch> search = std::nullopt);
  // Overload for batches of one layout.
  ReadAhead(std::vector<std::unique_ptr<Maker>> makers, std::vector<Column> layout, JobOf job_of,
            int prefetch, core::BufferPool& pool,
            std::optional<ThreadSearch> search = std::nullopt);
  ~ReadAhead();  // joins the threads after their current samples

  // Returns the next batch, or nullopt at the end; one caller at a time. Throws the error of the
  // batch's first bad sample or of its plan, repeatedly until seek().
  std::optional<Batch> next();

  // Continues with batch `number`; drops the batches read before.
  void seek(std::int64_t number);

  // Returns the number of threads that fill batches. Same caller as next().
  int threads() const { return static_cast<int>(active_); }

 private:
  struct Slot;
  struct Chunk;

  // Measurement of the batches taken with one size of the read-ahead, after those that were read
  // ahead before.
  struct Window {
    std::int64_t batches = 0, samples = 0;
    double waited_s = 0;   // in next()
    double between_s = 0;  // from the end of a next() to the following one
  };

  void start_threads();
  void end_threads();
  void work(std::size_t index);
  void measure(std::int64_t samples, core::SteadyTime asked);
  void resize(ReadAheadSize size);
  std::optional<Chunk> claim();
  bool open_slot();
  void fill(Maker& maker, const Chunk& chunk, std::unique_lock<std::mutex>& lock);
  static Batch batch_of(Slot& slot);

  const LayoutOf layout_of_;
  const JobOf job_of_;
  core::BufferPool& pool_;
  std::optional<ThreadSearch> search_;  // used by the caller of next() alone
  Window window_;
  std::int64_t before_window_ = 0;  // batches left that were read ahead before the window
  core::SteadyTime returned_{};     // end of the previous next()

  std::mutex mutex_;  // guards the members below and the counts of the slots
  std::condition_variable work_there_, batch_there_;
  std::deque<std::shared_ptr<Slot>> slots_;  // batches, the next one first
  std::int64_t next_number_ = 0;             // number of the batch after `slots_`
  bool ended_ = false, stop_ = false;
  std::size_t prefetch_;
  std::size_t active_;  // threads that may take samples; written by the caller of next() alone

  std::vector<std::unique_ptr<Maker>> makers_;
  std::vector<std::thread> threads_;
};

// Adapts a ReadAhead to BatchStream.
class ReadAheadStream : public BatchStream {
 public:
  using KeyOf = std::function<std::string(std::int64_t epoch, std::int64_t position)>;

  // `source`: object that the makers and jobs refer to; kept until the threads have ended. `plan`:
  // nullptr for an evaluation. `key_of`: BatchStream::key().
  ReadAheadStream(std::shared_ptr<const void> source, std::unique_ptr<ReadAhead> batches,
                  const ReaderSlice& slice, std::shared_ptr<const core::StepPlan> plan,
                  KeyOf key_of = nullptr)
      : source_(std::move(source)),
        batches_(std::move(batches)),
        slice_(slice),
        plan_(std::move(plan)),
        key_of_(std::move(key_of)) {}

  std::optional<Batch> next() override { return batches_->next(); }
  void seek(Position position) override {
    const std::int64_t step = plan_ ? plan_->first_step(position.epoch) + position.step : 0;
    batches_->seek(plan_ ? first_job(slice_, *plan_, step) : 0);
  }
  std::int64_t steps_per_epoch() const override { return plan_ ? plan_->steps_per_epoch() : 0; }
  std::shared_ptr<const core::StepPlan> growing() const override {
    return slice_.ramp ? plan_ : nullptr;
  }
  std::string key(std::int64_t epoch, std::int64_t position) const override {
    return key_of_ ? key_of_(epoch, position) : "";
  }
  int threads() const override { return batches_->threads(); }

 private:
  std::shared_ptr<const void> source_;
  std::unique_ptr<ReadAhead> batches_;
  ReaderSlice slice_;
  std::shared_ptr<const core::StepPlan> plan_;
  KeyOf key_of_;
};

}  // namespace scaletrain::data
