// Batches of one rank, in the global data order, read ahead by threads.
//
// Position p of an epoch holds the same sample whatever the number of ranks, threads or restarts;
// a rank reads its blocks of every global batch (lib/data/order/order.h). Which columns a batch has
// says the header of who opens the stream (image_stream.h, token_stream.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "lib/core/step_plan.h"
#include "lib/data/loader/batch.h"

namespace scaletrain::data {

// A place in training, both from 0.
struct Position {
  std::int64_t epoch = 0, step = 0;
};

class BatchStream {
 public:
  virtual ~BatchStream() = default;  // stops and joins the threads

  // The next batch of this rank in order; blocks while it is not read. Of training: a micro-batch,
  // without an end, epoch after epoch. Of an evaluation: nullopt at the end; every sample of the
  // set comes exactly once over all ranks, in file order, without padding, so the last batch may be
  // short, one with bad samples too (even empty), and ranks may differ by a batch. One caller at a
  // time. Throws core::DataError naming where a damaged sample is, again until seek().
  virtual std::optional<Batch> next() = 0;

  // Goes on reading ahead from there, an evaluation from its start; drops what was read before.
  // Nothing is read before the first seek() or next().
  virtual void seek(Position position) = 0;

  // Of training: floor(samples / global batch); 0 of an evaluation.
  virtual std::int64_t steps_per_epoch() const = 0;

  // Of training with a batch that grows, whose epochs have more steps at first; otherwise nullptr.
  virtual std::shared_ptr<const core::StepPlan> growing() const { return nullptr; }
};

}  // namespace scaletrain::data
