// c10d's Reducer with exchanges of our own: it hands over each bucket when its last gradient is
// there, in the same order on all ranks.
//
// All is done on the thread of backward: so every rank asks for the same collectives in the same
// order. Of the bucket before, what comes second (go_on) is done when the next one has begun; with
// the last bucket all are finished.
#pragma once

#include <cstddef>
#include <memory>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <vector>

#include "lib/parallel/compress/bucket.h"

namespace scaletrain::parallel {

using BucketExchanges = std::vector<std::unique_ptr<BucketExchange>>;

// Of each bucket, in this step; null before the first.
struct StepExchanges {
  const BucketExchanges* now = nullptr;
};

class ExchangeHook : public c10d::CppCommHookInterface<const StepExchanges*> {
 public:
  explicit ExchangeHook(const StepExchanges* exchanges) : CppCommHookInterface(exchanges) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override;

 private:
  struct UnderWay {
    at::Tensor flat;
    c10::intrusive_ptr<c10::ivalue::Future> done;
  };
  std::vector<UnderWay> under_way_;  // buckets of this step
};

}  // namespace scaletrain::parallel
