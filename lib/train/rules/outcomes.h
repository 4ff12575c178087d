// Asynchronous readback of step results to the host: the one place that reads values of tensors
// while training runs.
//
// On a device a step's sums are copied to pinned memory behind the work that computes them, and are
// read when the step after it has been queued: the host is never more than a step ahead of what it
// knows. On a CPU nothing is queued and they are read at once.
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

  // Sends `values`, one dimension of doubles on the group's device, as they are when the work that
  // is queued so far is done; they may be overwritten by what is queued from then on.
  void send(const at::Tensor& values);
  // Vectors that were sent and not taken.
  std::size_t waiting() const { return on_their_way_.size(); }
  // True if the oldest result may be taken, that is, if it is not held back.
  bool is_due() const { return waiting() > (late_ ? 1 : 0); }
  // The oldest vector; waits until it has come. At least one is waiting. Throws core::StoppedError
  // where a collective failed before: the values may be anything then.
  std::vector<double> take();

 private:
  struct Message;  // a buffer on the host and the event of its copy
  std::unique_ptr<Message> free_message(std::int64_t size);

  dist::Group& group_;
  bool late_;
  std::deque<std::unique_ptr<Message>> on_their_way_;
  std::vector<std::unique_ptr<Message>> free_;  // buffers whose values were taken
};

// `Facts` is what the host knows of a step when it queues it.
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
