// Ranks of the shard axis that hold a model together (Rajbhandari et al., ZeRO: Memory
// Optimizations Toward Training Trillion Parameter Models, 2020), each with a part of every block
// of parameters (lib/parallel/unit_flats.h); along the replica axis stand copies of them (HSDP),
// which add up gradients in each step, perhaps compressed, or exchange weights now and then.
//
// Gradients are copied into a block of their unit as they arrive, and the ranks of the shard axis
// add it up part by part as soon as backward is through with the unit; copies add up their parts
// in a step's last micro-step. At kOptimizer blocks of gradients stay until then, so that a step
// exchanges once; otherwise each micro-step does, and one block is there at a time. Of a backward
// in halves it is the second one that exchanges, block by block as gradients of weights are
// computed; those that the first one gives, of norms and embeddings, wait for it. It needs no
// parameters: a weight's gradient is made of what came in and of the gradient of what went out.
//
// At kParameters a block's memory is given back after its unit and taken again before it, while
// the next unit's is on its way: two units are there at most, and tied tensors with each unit that
// uses them. Parameters are views of their blocks for ever; only the memory comes and goes, so that
// what autograd has saved of them is whole again when backward needs it. Some may be gathered as
// bf16 from fp32 parts, in place of the copies that autocast makes and keeps. The parts may lie in
// the host's memory: each goes to the device on a stream of its own before its block is gathered,
// and gradients stay on the device until the update takes them (lib/optim/host_optimizer.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class Sharded : public Placement, public UnitHooks {
 public:
  // The parameters are views of blocks from here on, with the same values; without the placement
  // nobody runs the model any more.
  Sharded(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
          const Sharding& sharding, const GradientExchange& exchange = {});
  ~Sharded() override;

  const std::vector<units::NamedParameter>& owned() const override;
  const std::vector<units::NamedParameter>& parts() const override;
  void start(const BucketLayout& saved) override;
  void spread_ahead() override;
  void settle() override;
  UnitHooks* hooks() override { return this; }
  void zero_grad() override;
  void begin_step(std::int64_t step) override;
  void end_step(const at::Tensor& found_inf) override;
  std::map<std::string, at::Tensor> own_state() override;
  void begin_micro_step(bool synchronize) override;
  void begin_inputs() override;
  void begin_weights(bool last) override;
  void end_weights() override;
  void prepare_backward(const at::Tensor& loss) override;
  std::int64_t exchanged_bytes() const override;
  BucketLayout layout() const override { return {}; }

  void enter(std::size_t unit, Pass pass) override;
  void leave(std::size_t unit, Pass pass) override;
  void end_backward() override;
  bool exchanges() const override;

  // Units whose parameters were there at the same time, at most, since training began.
  std::size_t most_units() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace scaletrain::parallel
