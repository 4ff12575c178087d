// How a model lies on the ranks of a mesh: what each rank owns, and what the ranks exchange while
// they train. Data parallelism is the one that there is (lib/parallel/data_parallel.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "lib/dist/mesh.h"
#include "lib/parallel/layout.h"
#include "lib/units/named_parameter.h"

namespace scaletrain::parallel {

class Placement {
 public:
  virtual ~Placement() = default;

  // What this rank updates, in the model's order; optimizer state belongs to it. After a step's
  // last backward its gradients are the mean over the data coordinates.
  virtual const std::vector<units::NamedParameter>& owned() const = 0;

  // Called once, before the first step, when the parameters have the values that training begins
  // with, on all ranks alike. `saved`: layout() of a checkpoint taken on as many ranks, or empty.
  // Throws core::CheckpointError when it does not name each parameter once.
  virtual void start(const BucketLayout& saved) = 0;

  // Before a step's first micro-step: takes the gradients away.
  virtual void zero_grad() = 0;
  // Before each micro-step's forward. `synchronize`: it is the last of its step, and gradients are
  // exchanged during its backward.
  virtual void begin_micro_step(bool synchronize) = 0;
  // Between forward and backward, with what backward starts from.
  virtual void prepare_backward(const at::Tensor& loss) = 0;
  // Behind a step's last backward: what was not exchanged during backward is now.
  virtual void end_backward() {}

  // How gradients travel together, which a checkpoint keeps; empty where nothing does.
  virtual BucketLayout layout() const = 0;
};

// `parameters`: the model's, whole, the same on all ranks. The mesh outlives it.
std::unique_ptr<Placement> make_placement(std::vector<units::NamedParameter> parameters,
                                          const dist::Mesh& mesh);

}  // namespace scaletrain::parallel
