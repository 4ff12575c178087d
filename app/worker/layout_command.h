// `scaletrain-worker layout`: predicts state, memory and communication of a job's ranks, for
// `scaletrain explain`.
#pragma once

#include "app/worker/models.h"

namespace scaletrain::app {

// Writes one JSON object to --out:
// {"pipeline", "replica", "shard", "tensor", "per_device", "micro_batches", "global_batch",
//  "idle_share", "ranks": [{"rank", "units": [first, last, count], "held",
//    "flops": {"forward", "backward", "recomputed"},
//    "bytes": {"parameters", "gathered", "gradients", "unreduced", "optimizer", "averages",
//      "unsent", "activations"},
//    "traffic": [{"axis", "what", "kind", "ranks", "nodes", "calls", "bytes", "sent_bytes"}]}]}
// and with --measure-mb {"machine": {"flops_per_s", "bytes_per_s"}, "measured": {"was_replayed",
// "bytes": {"parameters", "gradients", "optimizer", "activations", "inputs", "other"}}}, the latter
// only if rank 0's step can run here; and with --steps {"rates": [{"step", "lr"}]}, steps from 1:
// the first one, the last one of the warmup, the middle and the last one, unless the schedule needs
// an unknown --steps-per-epoch. "ranks" has one rank of each pipeline stage; "nodes" is the number
// of nodes that the group's ranks are on.
int run_layout(int argc, char** argv, const Models& models);

}  // namespace scaletrain::app
