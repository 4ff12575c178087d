#include "lib/data/order/batch_job.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "lib/core/error.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace core = scaletrain::core;

TEST_CASE("the jobs of all ranks are the blocks of every global batch, each once") {
  for (const int ranks : {1, 2, 4}) {
    std::set<std::pair<std::int64_t, std::int64_t>> blocks;  // epoch and position
    for (int rank = 0; rank < ranks; ++rank) {
      const ReaderSlice slice{rank, ranks, 3, 4 / ranks};
      CHECK(slice.global_batch() == 12);
      const auto plan = plan_steps(slice, 65);  // of five steps
      for (std::int64_t number = 0; number < 10 * slice.accumulate; ++number) {
        const BatchJob job = train_job(slice, *plan, number);  // two epochs
        CHECK(job.count == 3);
        CHECK(blocks.emplace(job.epoch, job.position).second);
      }
    }
    CHECK(blocks.size() == 40);
    CHECK(blocks.begin()->second == 0);
    CHECK(*blocks.rbegin() == std::pair<std::int64_t, std::int64_t>{1, 57});
  }
}

TEST_CASE("evaluation jobs cover a set of any size without overlap") {
  for (const std::int64_t size : {1, 11, 12, 13}) {
    std::int64_t covered = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const ReaderSlice slice{rank, 3, 4, 1};
      for (std::int64_t number = 0; const auto job = eval_job(slice, size, number); ++number) {
        CHECK(job->position == (number * 3 + rank) * 4);
        covered += job->count;
      }
    }
    CHECK(covered == size);
  }
}

TEST_CASE("an epoch has as many steps as whole global batches fit") {
  CHECK(plan_steps({0, 2, 3, 2}, 12)->steps_per_epoch() == 1);
  CHECK(plan_steps({0, 2, 3, 2}, 35)->steps_per_epoch() == 2);
  CHECK_THROWS_WITH_AS(
      plan_steps({0, 2, 3, 2}, 11),
      "/batch: a global batch of 12 samples (per_device 3 x accumulate 2 x 2 ranks) is more than "
      "the 11 samples of an epoch\n  lower per_device or accumulate, use fewer ranks, or add data",
      core::RecipeError);
}

TEST_CASE(
    "during a batch size ramp all numbers of ranks have the same micro-batches in each step") {
  // 4, 4, 4, 8, 8, 12, 12, ...; an epoch of 30 ends where the next one does not fit.
  const core::BatchRamp ramp{.start = 4, .increment = 4, .samples = 24};
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> steps;  // by block
  for (const int ranks : {1, 2}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const ReaderSlice slice{rank, ranks, 2, 6 / ranks, ramp};
      const auto plan = plan_steps(slice, 30);
      CHECK(first_job(slice, *plan, 3) == 12 / slice.micro_batch());
      for (std::int64_t number = 0; number < 64 / slice.micro_batch(); ++number) {
        const BatchJob job = train_job(slice, *plan, number);
        CHECK(job.count == 2);
        CHECK(job.position + job.count <= 30);
        const std::int64_t step = plan->step_of(job.epoch, job.position);
        CHECK(plan->at(step).epoch == job.epoch);
        steps[{job.epoch, job.position}].insert(step);
      }
    }
  }
  CHECK(steps.size() == 32);  // 64 samples
  for (const auto& one : steps) CHECK(one.second.size() == 1);
}

TEST_CASE("a batch that grows goes on where training stands, though the set has another size") {
  const core::BatchRamp ramp{.start = 4, .increment = 4, .samples = 24};
  ReaderSlice slice{0, 1, 2, 6, ramp};
  const auto whole = plan_steps(slice, 30);
  slice.from_step = 6;
  slice.from = whole->at(6);
  CHECK(slice.from == core::StepPlace{.epoch = 1, .step_in_epoch = 1, .position = 12});
  CHECK(plan_steps(slice, 30)->at(3) == whole->at(3));  // the same plan
  const auto longer = plan_steps(slice, 40);
  CHECK(longer->at(6) == slice.from);
  CHECK(longer->at(7) == core::StepPlace{.epoch = 1, .step_in_epoch = 2, .position = 24});
  CHECK(longer->at(8) == core::StepPlace{.epoch = 2});
  const BatchJob first = train_job(slice, *longer, first_job(slice, *longer, 6));
  CHECK(first.epoch == 1);
  CHECK(first.position == 12);
}
