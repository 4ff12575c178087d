// Asynchronous readback of step results to the host: the one place that reads values of tensors
// while training runs.
//
// On a device a step's sums are copied to pinned memory after the work that computes them, and are
// read when the next step has been queued: the host is at most one step ahead of the results. On a
// CPU they are read at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/dist/group.h"

namespace scaletrain::train {

// Vectors of doubles on their way to the host, taken in the order in which they were sent.
class LateReads {
 public:
  // `late`: the newest vector is held back, as on a device; for tests, on a CPU too.
  LateReads(dist::Group& group, bool late);
  ~LateReads();

  // Sends `values`, a one-dimensional tensor of doubles on the group's device, with their values
  // after all work queued so far. Work that is queued later may overwrite them.
  void send(const at::Tensor& values);
  // Number of vectors that were sent but not taken yet.
  std::size_t waiting() const { return on_their_way_.size(); }
  // True if the oldest result may be taken, that is, if it is not held back.
  bool is_due() const { return waiting() > (late_ ? 1 : 0); }
  // Returns the oldest values and waits for them; at least one vector must be pending. Throws
  // core::StoppedError if a collective has failed, since the values are then undefined.
  std::vector<double> take();

 private:
  struct Message;  // a buffer on the host and the event of its copy
  std::unique_ptr<Message> free_message(std::int64_t size);

  dist::Group& group_;
  bool late_;
  std::deque<std::unique_ptr<Message>> on_their_way_;
  std::vector<std::unique_ptr<Message>> free_;  // buffers whose values were taken
};

// `Facts`: data that the host knows about a step when it queues it.
template <class Facts>
class Outcomes {
 public:
  struct Outcome {
    Facts facts;
    std::vector<double> sums;
  };

  // Readback is late by default on a device, not on a CPU.
  explicit Outcomes(dist::Group& group) : Outcomes(group, !group.device().is_cpu()) {}
  Outcomes(dist::Group& group, bool late) : reads_(group, late) {}

  // A step was queued that computes `sums`, as LateReads::send takes them.
  void push(const at::Tensor& sums, Facts facts) {
    reads_.send(sums);
    facts_.push_back(std::move(facts));
  }
  // Returns the outcome of the step pushed last, or of the one before it if `late`, each once;
  // nullopt if none is due.
  std::optional<Outcome> next() { return reads_.is_due() ? drain() : std::nullopt; }
  // Returns the oldest outcome, due or not; nullopt if there is none. Call it until nullopt before
  // a save, an evaluation or a stop.
  std::optional<Outcome> drain() {
    if (reads_.waiting() == 0) return std::nullopt;
    Outcome outcome{std::move(facts_.front()), reads_.take()};
    facts_.pop_front();
    return outcome;
  }

 private:
  LateReads reads_;
  std::deque<Facts> facts_;
};

}  // namespace scaletrain::train
