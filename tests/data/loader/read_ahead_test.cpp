#include "lib/data/loader/read_ahead.h"

#include <doctest/doctest.h>

#include <atomic>
#include <system_error>

namespace scaletrain::data {
namespace {

// The one column is the position.
class CountingMaker : public Maker {
 public:
  Made make(std::int64_t /*epoch*/, std::int64_t position, const Row& row) override {
    row.values<std::int64_t>(0)[0] = position;
    return {};
  }
};

const std::vector<Column> kLayout{{Element::kInt64, 1}};

std::int64_t at(const std::optional<Batch>& batch, std::size_t row) {
  return batch->columns.values<std::int64_t>(0)[row];
}

std::vector<std::unique_ptr<Maker>> two_makers() {
  std::vector<std::unique_ptr<Maker>> makers;
  for (int i = 0; i < 2; ++i) makers.push_back(std::make_unique<CountingMaker>());
  return makers;
}

BatchJob job_of(std::int64_t number) { return {.epoch = 0, .position = 4 * number, .count = 4}; }

}  // namespace

TEST_CASE("nothing is planned before the first batch is asked for or sought") {
  const auto pool = core::make_host_pool();
  std::atomic<std::int64_t> first = -1;
  ReadAhead batches(
      two_makers(), kLayout,
      [&](std::int64_t number) {
        std::int64_t none = -1;
        first.compare_exchange_strong(none, number);
        return job_of(number);
      },
      3, *pool);
  batches.seek(5);
  CHECK(at(batches.next(), 0) == 20);
  CHECK(at(batches.next(), 3) == 27);
  CHECK(first == 5);
  batches.seek(0);
  CHECK(at(batches.next(), 0) == 0);
}

TEST_CASE("what planning a batch throws comes where the batch is asked for") {
  const auto pool = core::make_host_pool();
  ReadAhead batches(
      two_makers(), kLayout,
      [](std::int64_t number) {
        if (number == 2) throw std::system_error(EAGAIN, std::generic_category(), "no threads");
        return job_of(number);
      },
      4, *pool);
  CHECK(batches.next()->count == 4);
  CHECK(batches.next()->count == 4);
  CHECK_THROWS_AS(batches.next(), std::system_error);
  CHECK_THROWS_AS(batches.next(), std::system_error);
  batches.seek(3);
  CHECK(at(batches.next(), 0) == 12);
}

TEST_CASE("a search changes the number of threads, and batches stay in order") {
  const auto pool = core::make_host_pool();
  const ThreadSearch search({.threads = 2, .prefetch = 2}, /*least_window_s=*/0);
  std::vector<std::unique_ptr<Maker>> makers;
  for (int i = 0; i < search.most().threads; ++i) {
    makers.push_back(std::make_unique<CountingMaker>());
  }
  ReadAhead batches(std::move(makers), kLayout, job_of, 2, *pool, search);
  CHECK(batches.threads() == 2);
  std::vector<int> seen;
  for (std::int64_t number = 0; number < 200; ++number) {
    CHECK(at(batches.next(), 0) == 4 * number);
    if (seen.empty() || seen.back() != batches.threads()) seen.push_back(batches.threads());
  }
  CHECK(seen.size() >= 2);
}

}  // namespace scaletrain::data
