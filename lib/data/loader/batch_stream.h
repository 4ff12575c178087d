// Stream of one rank's batches in the global data order, read ahead by threads.
//
// Position p of an epoch holds the same sample whatever the number of ranks, threads or restarts; a
// rank reads its blocks of every global batch (lib/data/order/order.h). image_stream.h and
// token_stream.h describe the columns of a batch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/plan/step_plan.h"
#include "lib/data/loader/batch.h"

namespace scaletrain::data {

// A position in training, both from 0.
struct Position {
  std::int64_t epoch = 0, step = 0;
};

class BatchStream {
 public:
  virtual ~BatchStream() = default;  // stops and joins the threads

  // Returns this rank's next batch; blocks until it is read. Training streams never end: they give
  // micro-batches, epoch after epoch. Evaluation streams give every sample exactly once over all
  // ranks, in file order and without padding, then nullopt. The last batch may be short, and so may
  // a batch with bad samples (even empty); ranks may differ by one batch. One caller at a time.
  // Throws core::DataError with the place of a damaged sample, repeatedly until seek().
  virtual std::optional<Batch> next() = 0;

  // Restarts reading at `position` (an evaluation at its start) and drops batches read before.
  // Nothing is read before the first seek() or next().
  virtual void seek(Position position) = 0;

  // floor(samples / global batch) of a training stream; 0 in an evaluation.
  virtual std::int64_t steps_per_epoch() const = 0;

  // Step plan of a training stream whose batch grows, so that its first epochs have more steps;
  // otherwise nullptr.
  virtual std::shared_ptr<const core::StepPlan> growing() const { return nullptr; }

  // Returns shard and key of the sample at a position of a training stream, such as
  // "train-000003.tar/000123"; "" if it is not known. May read the sample. Any thread.
  virtual std::string key(std::int64_t /*epoch*/, std::int64_t /*position*/) const { return ""; }

  // Returns the number of threads that read; 0 if it is not known. Same caller as next().
  virtual int threads() const { return 0; }
};

}  // namespace scaletrain::data
