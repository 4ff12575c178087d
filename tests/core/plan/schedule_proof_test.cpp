#include "lib/core/plan/schedule_proof.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

constexpr int kMost = 16;  // ranks and micro-batches
// As the papers count: backward is twice as much work as forward.
constexpr WorkCosts kPaper{.forward = 1, .backward_input = 1, .backward_weight = 1};

void for_each_shape(int chunks, PipelineKind kind,
                    const std::function<void(const PipelineShape&)>& check) {
  for (int ranks = 1; ranks <= kMost; ++ranks) {
    for (int micros = ranks; micros <= kMost; ++micros) {
      const PipelineShape shape{.ranks = ranks, .micros = micros, .chunks = chunks};
      if (!can_schedule(kind, shape)) continue;
      CAPTURE(ranks);
      CAPTURE(micros);
      CAPTURE(chunks);
      check(shape);
    }
  }
}

std::string refusal(const Schedule& schedule, const PipelineShape& shape) {
  try {
    prove(schedule, shape);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

constexpr Action forward(int micro, int chunk = 0) { return {Work::kForward, micro, chunk}; }
constexpr Action backward(int micro, int chunk = 0) { return {Work::kBackward, micro, chunk}; }

}  // namespace

// Of m + p - 1 turns each rank has m (Huang et al., section 2.3).
TEST_CASE("gpipe and 1f1b wait (p - 1) / (m + p - 1) of the time, whatever backward costs") {
  for (const WorkCosts& costs : {kPaper, WorkCosts{1, 0.5, 0.25}}) {
    for (const PipelineKind kind : {PipelineKind::kGPipe, PipelineKind::kOneForward}) {
      for_each_shape(1, kind, [&](const PipelineShape& shape) {
        const ScheduleProof proof = prove(make_schedule(kind, shape), shape, costs);
        const double waits = shape.ranks - 1;
        CHECK(proof.idle_share == doctest::Approx(waits / (shape.micros + waits)));
        const double turn = costs.forward + costs.backward_input + costs.backward_weight;
        CHECK(proof.length == doctest::Approx((shape.micros + waits) * turn));
      });
    }
  }
}

TEST_CASE("gpipe holds all micro-batches, 1f1b as many as there are ranks from this one on") {
  for_each_shape(1, PipelineKind::kGPipe, [](const PipelineShape& shape) {
    const ScheduleProof proof = prove(make_schedule(PipelineKind::kGPipe, shape), shape);
    CHECK(proof.held == std::vector<int>(static_cast<std::size_t>(shape.ranks), shape.micros));
  });
  for_each_shape(1, PipelineKind::kOneForward, [](const PipelineShape& shape) {
    const ScheduleProof proof = prove(make_schedule(PipelineKind::kOneForward, shape), shape);
    for (int rank = 0; rank < shape.ranks; ++rank) {
      CHECK(proof.held[static_cast<std::size_t>(rank)] == shape.ranks - rank);
    }
  });
}

// The waits are v times shorter (Narayanan et al., section 2.2).
TEST_CASE("v chunks wait (p - 1) / (v m + p - 1) of the time") {
  for (const int chunks : {1, 2, 3, 4}) {
    for_each_shape(chunks, PipelineKind::kInterleaved, [&](const PipelineShape& shape) {
      const ScheduleProof proof =
          prove(make_schedule(PipelineKind::kInterleaved, shape), shape, kPaper);
      const double waits = shape.ranks - 1;
      CHECK(proof.idle_share == doctest::Approx(waits / (chunks * shape.micros + waits)));
    });
  }
}

TEST_CASE("4 ranks with 8 micro-batches wait and hold what the prototypes did") {
  const auto of = [](PipelineKind kind, int chunks) {
    const PipelineShape shape{.ranks = 4, .micros = 8, .chunks = chunks};
    return prove(make_schedule(kind, shape), shape, kPaper);
  };
  const ScheduleProof interleaved = of(PipelineKind::kInterleaved, 2);
  CHECK(interleaved.idle_share == doctest::Approx(3.0 / 19));
  CHECK(interleaved.held == std::vector<int>{11, 9, 7, 5});
  CHECK(of(PipelineKind::kOneForward, 1).held == std::vector<int>{4, 3, 2, 1});
  const ScheduleProof zero_bubble = of(PipelineKind::kZeroBubble, 1);
  CHECK(zero_bubble.idle_share == doctest::Approx(3.0 / 27));  // of 8 x 3 + 3
  CHECK(zero_bubble.held == std::vector<int>{4, 4, 4, 4});
}

// Qi et al., table 2: of (p - 1)(F + B + W) 1F1B's wait, ZB-H1 leaves (p - 1)(F + B - W), and no
// rank holds more than 1F1B's first one does.
TEST_CASE("zero bubble waits (p - 1)(F + B - W) and holds p micro-batches") {
  for_each_shape(1, PipelineKind::kZeroBubble, [](const PipelineShape& shape) {
    const ScheduleProof proof =
        prove(make_schedule(PipelineKind::kZeroBubble, shape), shape, kPaper);
    const double waits = shape.ranks - 1;
    CHECK(proof.length == doctest::Approx(3 * shape.micros + waits));
    CHECK(*std::max_element(proof.held.begin(), proof.held.end()) <= shape.ranks);
    // The same with a shorter gradient of weights.
    const WorkCosts costs{.forward = 1, .backward_input = 1, .backward_weight = 0.5};
    const ScheduleProof other =
        prove(make_schedule(PipelineKind::kZeroBubble, shape), shape, costs);
    CHECK(other.length == doctest::Approx(2.5 * shape.micros + 1.5 * waits));
  });
}

TEST_CASE("a schedule in which ranks wait for each other is refused") {
  const PipelineShape shape{.ranks = 2, .micros = 2};
  // Rank 0 wants the first gradient before it gives the second micro-batch, rank 1 both first.
  CHECK(refusal({{forward(0), backward(0), forward(1), backward(1)},
                 {forward(0), forward(1), backward(0), backward(1)}},
                shape) ==
        "pipeline schedule: rank 0: waits for ever before backward of micro-batch 0, chunk 0");
}

TEST_CASE("a schedule that leaves something out, or takes it twice or out of order, is refused") {
  const PipelineShape shape{.ranks = 1, .micros = 2};
  CHECK(refusal({{forward(0), forward(1), backward(0)}}, shape) ==
        "pipeline schedule: rank 0: chunk 0 has 2 forwards, 1 backward, 0 of inputs and 0 of "
        "weights of 2 micro-batches");
  CHECK(refusal({{forward(0), forward(1), backward(1), backward(0)}}, shape) ==
        "pipeline schedule: rank 0: backward of micro-batch 1, chunk 0 is not in ascending order");
  CHECK(refusal({{forward(0), forward(0)}}, shape) ==
        "pipeline schedule: rank 0: forward of micro-batch 0, chunk 0 is not in ascending order");
  CHECK(refusal({{forward(2)}}, shape) ==
        "pipeline schedule: rank 0: forward of micro-batch 2, chunk 0 is not there");
  CHECK(refusal({}, shape) == "pipeline schedule: rank 1: 0 rows for 1 rank");
}

TEST_CASE("a schedule whose messages would be matched wrongly is refused") {
  // Chunk 1 of rank 0 wants what rank 1 gives first second.
  const PipelineShape shape{.ranks = 2, .micros = 1, .chunks = 3};
  const Schedule good{
      {forward(0, 0), forward(0, 1), forward(0, 2), backward(0, 2), backward(0, 1), backward(0, 0)},
      {forward(0, 0), forward(0, 1), forward(0, 2), backward(0, 2), backward(0, 1),
       backward(0, 0)}};
  CHECK(refusal(good, shape).empty());
  Schedule bad = good;
  std::swap(bad[1][0], bad[1][1]);
  CHECK(refusal(bad, shape) ==
        "pipeline schedule: rank 0: and rank 1 exchange messages in different orders");
}

}  // namespace scaletrain::core
