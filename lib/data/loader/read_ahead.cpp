#include "lib/data/loader/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace scaletrain::data {
namespace {

// Samples that a thread takes at once: few, so that all threads finish a batch at the same time,
// and enough that locking costs nothing.
constexpr std::int64_t kChunk = 8;

constexpr std::int64_t kLeastWindowBatches = 8;
// A longer time between two batches, in usual ones, is an evaluation or a checkpoint.
constexpr double kUsualTimes = 4;

}  // namespace

struct ReadAhead::Slot {
  BatchJob job;
  Columns columns;
  std::uint64_t digest = 0;
  std::int64_t targets = 0;
  std::vector<BadSample> skipped;
  std::vector<std::int64_t> absent;  // samples that were left out of the batch
  StageTimes stages;
  std::int64_t taken = 0, done = 0;  // samples
  std::exception_ptr error;
  std::int64_t error_at = 0;  // index of the sample that failed

  bool ready() const { return done == job.count; }
  // The error of the lowest index is kept, so that the message does not depend on the threads.
  void fail(std::int64_t at, std::exception_ptr what) {
    if (error && error_at <= at) return;
    error = std::move(what);
    error_at = at;
  }
};

struct ReadAhead::Chunk {
  std::shared_ptr<Slot> slot;
  std::int64_t begin, end;
};

ReadAhead::ReadAhead(std::vector<std::unique_ptr<Maker>> makers, LayoutOf layout_of, JobOf job_of,
                     int prefetch, core::BufferPool& pool, std::optional<ThreadSearch> search)
    : layout_of_(std::move(layout_of)),
      job_of_(std::move(job_of)),
      pool_(pool),
      search_(search),
      before_window_(prefetch),
      prefetch_(static_cast<std::size_t>(std::max(prefetch, 1))),
      active_(search ? static_cast<std::size_t>(search->size().threads) : makers.size()),
      makers_(std::move(makers)) {}

ReadAhead::ReadAhead(std::vector<std::unique_ptr<Maker>> makers, std::vector<Column> layout,
                     JobOf job_of, int prefetch, core::BufferPool& pool,
                     std::optional<ThreadSearch> search)
    : ReadAhead(
          std::move(makers),
          [layout = std::move(layout)](const BatchJob& /*job*/) { return layout; },
          std::move(job_of), prefetch, pool, search) {}

ReadAhead::~ReadAhead() { end_threads(); }

void ReadAhead::start_threads() {
  while (threads_.size() < active_) {
    threads_.emplace_back([this, index = threads_.size()] { work(index); });
  }
}

void ReadAhead::end_threads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_there_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<Batch> ReadAhead::next() {
  start_threads();
  const core::SteadyTime asked = core::now();
  std::unique_lock lock(mutex_);
  batch_there_.wait(lock, [this] { return slots_.empty() ? ended_ : slots_.front()->ready(); });
  if (slots_.empty()) return std::nullopt;
  if (slots_.front()->error) std::rethrow_exception(slots_.front()->error);
  const std::shared_ptr<Slot> slot = std::move(slots_.front());
  slots_.pop_front();
  lock.unlock();
  if (search_) measure(slot->job.count, asked);
  work_there_.notify_all();
  return batch_of(*slot);
}

// Counts a batch that was asked for at `asked` and is returned now.
void ReadAhead::measure(std::int64_t samples, core::SteadyTime asked) {
  const core::SteadyTime before = std::exchange(returned_, core::now());
  if (before_window_ > 0) {
    --before_window_;
    return;
  }
  const double between_s = std::chrono::duration<double>(asked - before).count();
  const auto batches = static_cast<double>(window_.batches);
  const double usual_s = batches > 0 ? window_.between_s / batches : between_s;
  window_.between_s += std::min(between_s, kUsualTimes * usual_s);
  window_.waited_s += std::chrono::duration<double>(returned_ - asked).count();
  window_.samples += samples;
  ++window_.batches;
  const double seconds = window_.between_s + window_.waited_s;
  if (seconds < search_->least_window_s() || window_.batches < kLeastWindowBatches) return;
  const bool changed =
      search_->add(static_cast<double>(window_.samples) / seconds, window_.waited_s / seconds);
  window_ = {};
  if (!changed) return;
  before_window_ = static_cast<std::int64_t>(prefetch_);
  resize(search_->size());
}

void ReadAhead::resize(ReadAheadSize size) {
  {
    const std::lock_guard lock(mutex_);
    active_ = static_cast<std::size_t>(size.threads);
    prefetch_ = static_cast<std::size_t>(size.prefetch);
  }
  start_threads();
}

void ReadAhead::seek(std::int64_t number) {
  {
    const std::lock_guard lock(mutex_);
    slots_.clear();  // threads keep the slots that they fill until they are done
    next_number_ = number;
    ended_ = false;
  }
  start_threads();
  work_there_.notify_all();
}

void ReadAhead::work(std::size_t index) {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::optional<Chunk> chunk;
    work_there_.wait(lock, [&] { return stop_ || (index < active_ && (chunk = claim())); });
    if (stop_) return;
    fill(*makers_[index], *chunk, lock);
  }
}

// Returns samples of the earliest batch with samples left; opens the next batch if there is none.
std::optional<ReadAhead::Chunk> ReadAhead::claim() {
  do {
    for (const auto& slot : slots_) {
      if (slot->taken == slot->job.count) continue;
      const std::int64_t begin = slot->taken;
      slot->taken = std::min(begin + kChunk, slot->job.count);
      return Chunk{slot, begin, slot->taken};
    }
  } while (open_slot());
  return std::nullopt;
}

bool ReadAhead::open_slot() {
  if (ended_ || slots_.size() >= prefetch_) return false;
  const auto slot = std::make_shared<Slot>();
  try {
    const std::optional<BatchJob> job = job_of_(next_number_);
    if (!job) {
      ended_ = true;
      batch_there_.notify_all();
      return false;
    }
    slot->job = *job;
    slot->columns = Columns(layout_of_(*job), job->count, pool_);
  } catch (...) {  // out of memory or threads: reported when the batch is requested
    slot->fail(0, std::current_exception());
    slot->taken = slot->done = slot->job.count;
    batch_there_.notify_all();
  }
  slots_.push_back(slot);
  ++next_number_;
  return true;
}

// Makes the chunk's samples without holding the lock, then counts them with the lock held.
void ReadAhead::fill(Maker& maker, const Chunk& chunk, std::unique_lock<std::mutex>& lock) {
  Slot& slot = *chunk.slot;
  lock.unlock();
  std::uint64_t digest = 0;
  std::int64_t targets = 0;
  std::vector<BadSample> skipped;
  std::vector<std::int64_t> absent;
  StageTimes stages;
  std::exception_ptr error;
  std::int64_t at = chunk.begin;
  try {
    for (; at < chunk.end; ++at) {
      Made made = maker.make(slot.job.epoch, slot.job.position + at, Row(slot.columns, at));
      digest += made.digest;
      targets += made.present ? made.targets : 0;
      stages += made.stages;
      std::move(made.skipped.begin(), made.skipped.end(), std::back_inserter(skipped));
      if (!made.present) absent.push_back(at);
    }
  } catch (...) {  // rethrown by next()
    error = std::current_exception();
  }
  lock.lock();
  if (error) slot.fail(at, std::move(error));
  slot.digest += digest;
  slot.targets += targets;
  slot.stages += stages;
  std::move(skipped.begin(), skipped.end(), std::back_inserter(slot.skipped));
  slot.absent.insert(slot.absent.end(), absent.begin(), absent.end());
  slot.done += chunk.end - chunk.begin;
  if (slot.ready()) batch_there_.notify_all();
}

Batch ReadAhead::batch_of(Slot& slot) {
  // Threads finish in any order.
  std::stable_sort(slot.skipped.begin(), slot.skipped.end(),
                   [](const BadSample& a, const BadSample& b) { return a.position < b.position; });
  std::sort(slot.absent.begin(), slot.absent.end());
  Batch batch;
  slot.columns.remove(slot.absent);
  batch.count = slot.columns.rows();
  batch.targets = slot.targets;
  batch.epoch = slot.job.epoch;
  batch.position = slot.job.position;
  batch.digest = slot.digest;
  batch.skipped = std::move(slot.skipped);
  batch.stages = slot.stages;
  batch.columns = std::move(slot.columns);
  return batch;
}

}  // namespace scaletrain::data
