// Parameters of a pipeline stage: this rank holds them in full, as do the data-parallel ranks that
// train the same stage. Gradients are averaged after the step's last backward, when the gradients
// for the previous stage have been sent, so that it overlaps with the earlier stages' backward.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lib/parallel/late_mean.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class StageParallel : public Placement {
 public:
  // `parameters`: those of this rank's stages; the caller has set `counts`.
  StageParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
                const GradientExchange& exchange = {})
      : mean_(std::move(parameters), exchange.ranks(mesh), exchange.count(mesh),
              "gradients of a stage",
              make_compression(exchange.compress, exchange.seed, exchange.ranks(mesh))) {}

  const std::vector<units::NamedParameter>& owned() const override { return mean_.parameters(); }
  void start(const BucketLayout& /*saved*/) override {}
  void zero_grad() override { mean_.zero_grad(); }
  void begin_step(std::int64_t step) override { mean_.begin_step(step); }
  void end_step(const at::Tensor& found_inf) override { mean_.end_step(found_inf); }
  void begin_micro_step(bool /*synchronize*/) override {}
  void prepare_backward(const at::Tensor& /*loss*/) override {}
  void exchange_rest() override { mean_.exchange(); }
  units::Shards state() override { return mean_.state(); }
  std::int64_t exchanged_bytes() const override { return mean_.exchanged_bytes(); }
  core::GradientPeak gradient_peak(bool /*accumulates*/) const override {
    return mean_.gradient_peak();
  }
  // The buckets follow from the parameters of each stage, so that there is nothing to save.
  BucketLayout layout() const override { return {}; }

 private:
  LateMean mean_;
};

}  // namespace scaletrain::parallel
