// Expert parallelism: each rank holds some experts of every mixture layer; another strategy, data
// parallel or sharded, handles all other parameters.
//
// Tokens travel to the ranks of their experts by all-to-all (lib/parallel/expert_exchange.h). After
// a backward an expert's gradient is therefore already the sum over the expert-parallel group.
// After a step's last backward it is all-reduced, perhaps compressed, over the ranks that hold the
// same experts, one of each group; with local SGD only over those of the rank's own replica.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/parallel/late_mean.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

// Rank in the mesh's experts() group for each expert's parameter; all ranks hold the others.
using ExpertPlaces = std::map<std::string, int>;

class ExpertParallel : public Placement, public UnitHooks {
 public:
  // `mesh` must have experts. Experts of other ranks have no memory after start().
  ExpertParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
                 const ExpertPlaces& places, const ShardingOptions& sharding,
                 const GradientExchange& exchange = {});

  const std::vector<units::NamedParameter>& owned() const override { return owned_; }
  // Includes the experts of other ranks, as tensors without elements.
  const std::vector<units::NamedParameter>& sharded_parameters() const override { return parts_; }
  void start(const BucketLayout& saved) override;
  void spread_ahead() override { others_->spread_ahead(); }
  void settle() override { others_->settle(); }
  UnitHooks* hooks() override { return this; }
  void zero_grad() override;
  void begin_step(std::int64_t step) override;
  void end_step(const at::Tensor& found_inf) override;
  void begin_micro_step(bool synchronize) override { others_->begin_micro_step(synchronize); }
  void begin_inputs() override { others_->begin_inputs(); }
  void begin_weights(bool last) override { others_->begin_weights(last); }
  void end_weights() override { others_->end_weights(); }
  void prepare_backward(const at::Tensor& loss) override { others_->prepare_backward(loss); }
  void exchange_rest() override;
  std::int64_t exchanged_bytes() const override;
  core::GradientPeak gradient_peak(bool accumulates) const override;
  // Bucket layout of the parameters that belong to no expert.
  BucketLayout layout() const override { return others_->layout(); }

  void enter(std::size_t unit, Pass pass) override;
  void leave(std::size_t unit, Pass pass) override;
  void end_backward() override;
  bool exchanges() const override { return true; }

 private:
  std::vector<units::NamedParameter> elsewhere_;  // experts of other ranks
  std::unique_ptr<Placement> others_;             // strategy of all other parameters
  std::vector<units::NamedParameter> owned_, parts_;
  std::optional<LateMean> mean_;  // reduces gradients of this rank's experts
};

}  // namespace scaletrain::parallel
