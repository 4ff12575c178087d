// Pipeline schedules: the order in which each rank runs the forward and backward passes of a step's
// micro-batches. lib/core/plan/schedule_proof.h checks a schedule for deadlocks before it runs.
//
// A rank has one stage of the model, or several stages, called its chunks: chunk c of rank r is
// stage c x ranks + r. Each rank therefore sends its output to the next rank, and the last rank to
// the first. In every schedule each stage processes its micro-batches in ascending order, in
// backward too, so that gradients are summed in the same order as in one process.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace scaletrain::core {

enum class Work {
  kForward,
  kBackward,        // both gradients below
  kBackwardInput,   // the gradient of the stage's input, for which the stage before waits
  kBackwardWeight,  // the gradients of its weights; no other stage waits for them
};

struct Action {
  Work work = Work::kForward;
  int micro = 0, chunk = 0;
  bool operator==(const Action&) const = default;
};

using Schedule = std::vector<std::vector<Action>>;  // indexed by rank

struct PipelineShape {
  int ranks = 1, micros = 1;
  int chunks = 1;  // stages of each rank

  int stages() const { return ranks * chunks; }
  int stage(int rank, int chunk) const { return chunk * ranks + rank; }
};

enum class PipelineKind {
  kGPipe,        // all forwards, then all backwards (Huang et al., GPipe, 2019)
  kOneForward,   // "1F1B": keeps as few micro-batches in memory as possible (Harlap et al.,
                 // PipeDream, 2018)
  kInterleaved,  // 1F1B over chunks (Narayanan et al., Efficient Large-Scale LM Training, 2021)
  kZeroBubble,   // ZB-H1: weights' gradients fill waits (Qi et al., Zero Bubble Pipeline
                 // Parallelism, 2023, section 2.2)
};

// "gpipe", "1f1b", "interleaved" or "zero_bubble".
std::optional<PipelineKind> find_pipeline_kind(std::string_view name);

// True if the schedule supports this number of micro-batches: at least one for each rank, and a
// multiple of the ranks for the interleaved schedule.
bool can_schedule(PipelineKind kind, const PipelineShape& shape);

// `shape` has one chunk unless the schedule is interleaved; can_schedule() must be true.
Schedule make_schedule(PipelineKind kind, const PipelineShape& shape);

}  // namespace scaletrain::core
