#include "lib/data/order/batch_job.h"

#include <doctest/doctest.h>

#include <set>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("the jobs of all ranks are the blocks of every global batch, each once") {
  for (const int ranks : {1, 2, 4}) {
    std::set<std::pair<std::int64_t, std::int64_t>> blocks;  // epoch and position
    for (int rank = 0; rank < ranks; ++rank) {
      const ReaderSlice slice{rank, ranks, 3, 4 / ranks};
      CHECK(slice.global_batch() == 12);
      for (std::int64_t number = 0; number < 10 * slice.accumulate; ++number) {
        const BatchJob job = train_job(slice, 5, number);  // two epochs of five steps
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
  CHECK(steps_of_epoch({0, 2, 3, 2}, 12) == 1);
  CHECK(steps_of_epoch({0, 2, 3, 2}, 35) == 2);
}
