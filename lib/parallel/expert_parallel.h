// Experts of a mixture over the ranks that hold them together: each has some experts of each layer,
// and of everything else what another placement says.
//
// Tokens go to the ranks of their experts (lib/parallel/expert_exchange.h), so an expert's
// gradients are the sum over all ranks that share the experts as soon as backward is through;
// behind a step's last backward they are added up over the ranks that have the same experts, one
// for each copy of the model, perhaps compressed; of copies that exchange weights now and then over
// those of its own that have other tokens.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/parallel/late_mean.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

// By a parameter's name the rank of the mesh's experts() that has it; the others all have.
using ExpertPlaces = std::map<std::string, int>;

class ExpertParallel : public Placement, public UnitHooks {
 public:
  // The mesh has experts. Parameters of experts that are elsewhere have no memory from start() on.
  ExpertParallel(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
                 const ExpertPlaces& places, const Sharding& sharding,
                 const GradientExchange& exchange = {});

  const std::vector<units::NamedParameter>& owned() const override { return owned_; }
  // Of the experts those of other ranks too, without an element.
  const std::vector<units::NamedParameter>& parts() const override { return parts_; }
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
  // That of what is no expert's.
  BucketLayout layout() const override { return others_->layout(); }

  void enter(std::size_t unit, Pass pass) override;
  void leave(std::size_t unit, Pass pass) override;
  void end_backward() override;
  bool exchanges() const override { return true; }

 private:
  std::vector<units::NamedParameter> elsewhere_;  // experts of other ranks
  std::unique_ptr<Placement> others_;             // of what is no expert's
  std::vector<units::NamedParameter> owned_, parts_;
  std::optional<LateMean> mean_;  // of this rank's experts
};

}  // namespace scaletrain::parallel
