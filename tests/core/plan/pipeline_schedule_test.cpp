#include "lib/core/plan/pipeline_schedule.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

namespace scaletrain::core {
namespace {

// "F0 F1 B0": an action and its micro-batch; with chunks "F0.1", the chunk behind the point; I and
// W are the two halves of a backward.
std::string text_of(const std::vector<Action>& row, bool chunks = false) {
  std::string text;
  for (const Action& action : row) {
    if (!text.empty()) text += " ";
    text += fmt::format("{}{}", "FBIW"[static_cast<int>(action.work)], action.micro);
    if (chunks) text += fmt::format(".{}", action.chunk);
  }
  return text;
}

}  // namespace

TEST_CASE("the kinds of a pipeline have the names that recipes use") {
  CHECK(find_pipeline_kind("gpipe") == PipelineKind::kGPipe);
  CHECK(find_pipeline_kind("1f1b") == PipelineKind::kOneForward);
  CHECK(find_pipeline_kind("interleaved") == PipelineKind::kInterleaved);
  CHECK(find_pipeline_kind("zero_bubble") == PipelineKind::kZeroBubble);
  CHECK(!find_pipeline_kind("2f2b"));
}

TEST_CASE("gpipe runs all forwards first") {
  const Schedule schedule = make_schedule(PipelineKind::kGPipe, {.ranks = 2, .micros = 3});
  for (const auto& row : schedule) CHECK(text_of(row) == "F0 F1 F2 B0 B1 B2");
}

TEST_CASE("1f1b runs a backward as soon as one has come back") {
  const Schedule schedule = make_schedule(PipelineKind::kOneForward, {.ranks = 3, .micros = 4});
  CHECK(text_of(schedule[0]) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(text_of(schedule[1]) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(text_of(schedule[2]) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

// Narayanan et al., figure 4 for 2 ranks: groups of 2 micro-batches, one chunk after the other.
TEST_CASE("interleaved 1f1b goes through the chunks in groups of as many micro-batches as ranks") {
  const Schedule schedule =
      make_schedule(PipelineKind::kInterleaved, {.ranks = 2, .micros = 4, .chunks = 2});
  CHECK(text_of(schedule[0], true) ==
        "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
  CHECK(text_of(schedule[1], true) ==
        "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

// Qi et al., figure 2 at the top: a later rank begins later with the gradients of weights.
TEST_CASE("zero bubble keeps gradients of weights for the end, the last rank most of them") {
  const Schedule schedule = make_schedule(PipelineKind::kZeroBubble, {.ranks = 3, .micros = 4});
  CHECK(text_of(schedule[0]) == "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
  CHECK(text_of(schedule[1]) == "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
  CHECK(text_of(schedule[2]) == "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
}

TEST_CASE("a schedule needs a micro-batch a rank, and an interleaved one a multiple of them") {
  for (const PipelineKind kind : {PipelineKind::kGPipe, PipelineKind::kOneForward,
                                  PipelineKind::kInterleaved, PipelineKind::kZeroBubble}) {
    CHECK(!can_schedule(kind, {.ranks = 4, .micros = 3}));
    CHECK(can_schedule(kind, {.ranks = 4, .micros = 4}));
    CHECK(can_schedule(kind, {.ranks = 4, .micros = 8}));
    CHECK(can_schedule(kind, {.ranks = 4, .micros = 6}) == (kind != PipelineKind::kInterleaved));
  }
}

}  // namespace scaletrain::core
