// A run's pipeline: its stages, and what of the run only one of them has.
//
// Every rank holds the whole model, and trains the tensors of its own stages; of the others it has
// what they were when training began, or when everything was shared last.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "lib/checkpoint/contents.h"
#include "lib/engine/pipeline.h"
#include "lib/train/buffers.h"
#include "lib/train/run.h"

namespace scaletrain::train {

// The pipeline that the recipe asks for, null where it asks for none. Where stages shall take equal
// time, each unit is measured with a batch that training then reads once more. Every rank calls it.
std::unique_ptr<engine::Pipeline> make_pipeline(Run& run);

// Of the run's trained parameters those of the stages that this rank has in the run's pipeline.
std::unique_ptr<parallel::Placement> make_stage_placement(Run& run);

// Gives `contents`, of which each rank of a pipeline has what its stages know, all of it on all of
// them; nothing to do without a pipeline. Every rank calls it.
void share_stages(Run& run, checkpoint::Contents& contents);

// The last stage's `rows`, [rows, columns] on the host, on all ranks of its pipeline; theirs may be
// empty. Without a pipeline `rows` itself.
at::Tensor of_last_stage(const Run& run, const at::Tensor& rows);

// State of the optimizer for the whole model, by name, to be filled from a checkpoint: the
// optimizer's own tensors without a pipeline.
NamedTensors whole_optimizer_state(Run& run);
// Takes from that what this rank's optimizer has.
void take_optimizer_state(Run& run, const NamedTensors& whole);

}  // namespace scaletrain::train
