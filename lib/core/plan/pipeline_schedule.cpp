#include "lib/core/plan/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <utility>

namespace scaletrain::core {
namespace {

constexpr std::array<std::pair<std::string_view, PipelineKind>, 4> kNames = {
    {{"gpipe", PipelineKind::kGPipe},
     {"1f1b", PipelineKind::kOneForward},
     {"interleaved", PipelineKind::kInterleaved},
     {"zero_bubble", PipelineKind::kZeroBubble}}};

using Actions = std::vector<Action>;

Actions gpipe(const PipelineShape& shape) {
  Actions actions;
  for (const Work work : {Work::kForward, Work::kBackward}) {
    for (int micro = 0; micro < shape.micros; ++micro) actions.push_back({work, micro});
  }
  return actions;
}

// Runs forwards until the rank's first micro-batch comes back, then alternates backward and
// forward.
Actions one_forward(const PipelineShape& shape, int rank) {
  const int ahead = std::min(shape.ranks - 1 - rank, shape.micros);
  Actions actions;
  for (int micro = 0; micro < ahead; ++micro) actions.push_back({Work::kForward, micro});
  for (int micro = 0; micro < shape.micros; ++micro) {
    if (micro + ahead < shape.micros) actions.push_back({Work::kForward, micro + ahead});
    actions.push_back({Work::kBackward, micro});
  }
  return actions;
}

// Returns forward or backward number `index` of a rank: groups of as many micro-batches as ranks
// pass through one chunk after the other.
Action interleaved_action(const PipelineShape& shape, Work work, int index) {
  const int group = shape.ranks * shape.chunks;
  const int place = index % group / shape.ranks;
  return {work, index / group * shape.ranks + index % shape.ranks,
          work == Work::kForward ? place : shape.chunks - 1 - place};
}

Actions interleaved(const PipelineShape& shape, int rank) {
  const int count = shape.micros * shape.chunks;
  const int ahead =
      std::min((shape.ranks - 1 - rank) * 2 + (shape.chunks - 1) * shape.ranks, count);
  Actions actions;
  for (int i = 0; i < ahead; ++i) {
    actions.push_back(interleaved_action(shape, Work::kForward, i));
  }
  for (int i = 0; i < count; ++i) {
    if (i + ahead < count) {
      actions.push_back(interleaved_action(shape, Work::kForward, i + ahead));
    }
    actions.push_back(interleaved_action(shape, Work::kBackward, i));
  }
  return actions;
}

// Like 1F1B, but a rank that starts later defers more weight gradients to the end, so that all
// ranks hold as many micro-batches as the first one.
Actions zero_bubble(const PipelineShape& shape, int rank) {
  Actions actions;
  int weights = 0;
  for (const Action& action : one_forward(shape, rank)) {
    if (action.work == Work::kForward) {
      actions.push_back(action);
      continue;
    }
    actions.push_back({Work::kBackwardInput, action.micro});
    if (action.micro >= rank) actions.push_back({Work::kBackwardWeight, weights++});
  }
  while (weights < shape.micros) actions.push_back({Work::kBackwardWeight, weights++});
  return actions;
}

}  // namespace

std::optional<PipelineKind> find_pipeline_kind(std::string_view name) {
  const auto* const found = std::find_if(kNames.begin(), kNames.end(),
                                         [&](const auto& one) { return one.first == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->second;
}

bool can_schedule(PipelineKind kind, const PipelineShape& shape) {
  if (shape.micros < shape.ranks) return false;
  return kind != PipelineKind::kInterleaved || shape.micros % shape.ranks == 0;
}

Schedule make_schedule(PipelineKind kind, const PipelineShape& shape) {
  Schedule schedule;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    switch (kind) {
      case PipelineKind::kGPipe:
        schedule.push_back(gpipe(shape));
        break;
      case PipelineKind::kOneForward:
        schedule.push_back(one_forward(shape, rank));
        break;
      case PipelineKind::kInterleaved:
        schedule.push_back(interleaved(shape, rank));
        break;
      case PipelineKind::kZeroBubble:
        schedule.push_back(zero_bubble(shape, rank));
        break;
    }
  }
  return schedule;
}

}  // namespace scaletrain::core
