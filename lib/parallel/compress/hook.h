// Communication hook of c10d's Reducer that uses our bucket exchanges. The Reducer calls it with
// each bucket when the bucket's last gradient is ready, in the same order on all ranks.
//
// Everything runs on backward's thread, so all ranks issue the same collectives in the same order.
// A bucket's second part, go_on(), runs after the next one has begun; the last bucket ends all.
#pragma once

#include <cstddef>
#include <memory>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <vector>

#include "lib/parallel/compress/bucket.h"

namespace scaletrain::parallel {

using BucketExchanges = std::vector<std::unique_ptr<BucketExchange>>;

// Exchanges of this step, one for each bucket; null before the first step.
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
