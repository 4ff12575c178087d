// Placement of a run's model on its ranks, and the parts of a run that only one pipeline stage has.
//
// Every rank is built with the full model, except for tensor-parallel shards; in a pipeline it then
// trains and keeps only the tensors of its own stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "lib/engine/pipeline.h"
#include "lib/train/model/buffers.h"
#include "lib/train/run/run.h"

namespace scaletrain::train {

// Makes the pipeline that the recipe asks for; null if it asks for none. Stages of equal time are
// those of run.state if it has as many; otherwise a forward pass of the training set's next batch
// times each unit. run.state keeps them for checkpoints. Collective. `units`: the model's units in
// the parallel layout.
std::unique_ptr<engine::Pipeline> make_pipeline(Run& run, const std::vector<units::Unit>& units);

// Makes the parallel strategy of the run's parameters, used by `units`, of this rank's stages.
// `all_reduces`: gradients are all-reduced over all replicas in each step.
std::unique_ptr<parallel::Placement> make_placement(Run& run, const std::vector<units::Unit>& units,
                                                    bool all_reduces);

// Frees the parameters that only other pipeline stages use. They must not be accessed afterwards.
void drop_other_stages(Run& run);

// Broadcasts buffers by their names in the model (such as BatchNorm statistics), in place, from the
// stage that updates each to all ranks of the pipeline. No-op without a pipeline. Collective.
void share_buffers(const Run& run, const NamedTensors& buffers);

// Broadcasts the last stage's `rows`, [rows, columns] on the host, to all ranks of its pipeline;
// the argument of the other ranks is ignored. Without a pipeline, returns `rows`.
at::Tensor of_last_stage(const Run& run, const at::Tensor& rows);

}  // namespace scaletrain::train
