// ZeRO and FSDP: each rank of the shard axis holds a shard of every block of parameters
// (Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020;
// blocks: lib/parallel/unit_flats.h). Along the replica axis there are copies of the shards (HSDP),
// which all-reduce gradients in each step, perhaps compressed, or use local SGD.
//
// Gradients are copied into their unit's block as they arrive. As soon as backward has left the
// unit, the block is reduce-scattered over the shard axis; replicas all-reduce their shards in a
// step's last micro-step. At kOptimizer gradient blocks are kept until then, so that a step
// communicates once; otherwise each micro-step does, and one block exists at a time. With deferred
// weight gradients (zero-bubble) the second half of backward communicates, block by block;
// gradients of norms and embeddings, which the first half computes, wait for it. The second half
// needs no parameters: a weight's gradient depends on the layer's input and output gradient.
//
// At kParameters a unit is resharded (its memory freed) after it has run and unsharded
// (all-gathered) before it runs, while the next unit is prefetched: at most two units are unsharded
// at a time. Tied tensors are unsharded with each unit that uses them. Parameters stay views of
// their blocks; only the memory is freed and allocated again, so that tensors saved by autograd are
// valid again in backward. Some parameters may be all-gathered as bf16 from fp32 shards, which
// replaces the copies that autocast makes. Shards may be offloaded to CPU memory: each is copied to
// the device on a side stream before its all-gather; gradients stay on the device until the update
// takes them (lib/optim/host_optimizer.cpp).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "lib/parallel/copy_sums.h"
#include "lib/parallel/flat_block.h"
#include "lib/parallel/gather_ahead.h"
#include "lib/parallel/part_gather.h"
#include "lib/parallel/placement.h"

namespace scaletrain::parallel {

class Sharded : public Placement, public UnitHooks {
 public:
  // Makes the parameters views of blocks without changing their values; the model must not run
  // after this object is destroyed.
  Sharded(std::vector<units::NamedParameter> parameters, const dist::Mesh& mesh,
          const ShardingOptions& sharding, const GradientExchange& exchange = {});

  const std::vector<units::NamedParameter>& owned() const override { return owned_; }
  const std::vector<units::NamedParameter>& sharded_parameters() const override { return parts_; }
  void start(const BucketLayout& saved) override;
  void spread_ahead() override { ahead_.start(); }
  void settle() override { ahead_.settle(); }
  UnitHooks* hooks() override { return this; }
  void zero_grad() override;
  void begin_step(std::int64_t step) override { copies_.begin_step(step); }
  void end_step(const at::Tensor& found_inf) override { copies_.end_step(found_inf); }
  units::Shards state() override { return copies_.state(); }
  void begin_micro_step(bool synchronize) override;
  void begin_inputs() override;
  void begin_weights(bool last) override;
  void end_weights() override;
  void prepare_backward(const at::Tensor& loss) override;
  std::int64_t exchanged_bytes() const override;
  core::GradientPeak gradient_peak(bool accumulates) const override;
  BucketLayout layout() const override { return {}; }

  void enter(std::size_t unit, Pass pass) override;
  void leave(std::size_t unit, Pass pass) override;
  void end_backward() override;
  bool exchanges() const override { return shards_parameters(); }

  // Largest number of units that were unsharded at the same time since training began.
  std::size_t most_units() const { return most_units_; }

 private:
  struct Reducing {
    FlatBlock* block;
    at::Tensor part;
    dist::Pending pending;
  };
  // Half of a backward with deferred weight gradients that is running.
  enum class Half { kNone, kInputs, kWeights };

  bool shards_parameters() const { return level_ == ShardLevel::kParameters; }
  // Creates this rank's shards of the block's parameters.
  void take_parts(FlatBlock& block, const std::vector<units::NamedParameter>& parameters);
  dist::Pending gather(const FlatBlock& block);  // starts the all-gather
  void unshard(std::size_t unit);                // starts the unit's all-gathers
  void reshard(std::size_t unit);
  void arrive(FlatBlock& block, std::size_t slot);  // a gradient was computed
  void add(FlatBlock& block, std::size_t slot);     // adds it to the block's sums
  void close(FlatBlock* block);  // adds remaining gradients and reduces; null: no-op
  void reduce(FlatBlock& block);
  void finish_reduce();
  void add_to_copies(FlatBlock& block);  // starts the all-reduce over replicas
  void give_gradients();                 // sets the gradients of the owned shards

  std::vector<units::NamedParameter> owned_, parts_;
  std::size_t most_units_ = 0;
  const dist::Mesh& mesh_;
  dist::Group& shards_;
  CopySums copies_;
  ShardLevel level_;
  bool reduces_as_bf16_;
  bool parts_on_host_;
  PartGather parts_gather_;
  std::int64_t gradient_bytes_ = 0;  // sent so far
  std::vector<std::unique_ptr<FlatBlock>> blocks_;
  GatherAhead ahead_;  // prefetch of blocks below kParameters, after an update
  std::vector<std::vector<FlatBlock*>> of_unit_;
  std::vector<bool> is_unsharded_;  // by unit, at kParameters
  std::optional<Reducing> reducing_;
  bool synchronize_ = true;
  Half half_ = Half::kNone;
  FlatBlock* arriving_ = nullptr;  // block that gradients of the second half arrive for
};

}  // namespace scaletrain::parallel
