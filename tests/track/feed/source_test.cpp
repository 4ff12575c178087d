#include "lib/track/feed/source.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/temporary_folder.h"

namespace scaletrain::track {
namespace {

// A file of numbers, and what was written of it.
struct FollowedNumbers : test::TemporaryFolder {
  explicit FollowedNumbers(std::size_t batch = 2, std::uintmax_t from = 0)
      : source(
            {.file = path / "a.jsonl", .from = from, .batch = batch},
            [](const nlohmann::ordered_json& line) {
              return line.contains("n") ? std::vector<int>{line.at("n").get<int>()}
                                        : std::vector<int>{};
            },
            [this](std::span<const int> items) {
              batches.emplace_back(items.begin(), items.end());
            }) {}

  bool fill() {
    return source.fill([this] { ++restarts; });
  }

  // Writes all that the file has.
  void drain() {
    while (fill()) {
      source.write_batch();
      source.settle(true);
    }
  }

  std::vector<std::vector<int>> batches;
  int restarts = 0;
  ItemSource<int> source;
};

using Batches = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("a batch is held until it is settled, and what was lost is not written") {
  FollowedNumbers run;
  run.write("a.jsonl", "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
  REQUIRE(run.fill());
  REQUIRE(run.fill());
  run.source.write_batch();
  run.source.write_batch();
  CHECK(run.batches == Batches{{1, 2}, {1, 2}});
  CHECK(run.source.written() == 0);
  CHECK(run.source.count() == 3);  // one of them is not read yet
  run.source.settle(false);
  run.drain();
  CHECK(run.batches.back() == std::vector<int>{3});
  CHECK(run.source.written() == 1);
  CHECK(run.source.count() == 3);
  CHECK_FALSE(run.fill());
}

TEST_CASE("lines without items end no batch early") {
  FollowedNumbers run(/*batch=*/1);
  run.write("a.jsonl", "{\"other\":1}\n{\"other\":2}\n{\"n\":3}\n");
  run.drain();
  CHECK(run.batches == Batches{{3}});
}

TEST_CASE("a file is followed from a byte on, and from its beginning after a rewind") {
  FollowedNumbers run(/*batch=*/2, /*from=*/8);  // bytes of the first line
  run.write("a.jsonl", "{\"n\":1}\n{\"n\":2}\n");
  run.drain();
  run.source.rewind();
  CHECK(run.source.written() == 0);
  CHECK(run.source.count() == 2);
  run.drain();
  CHECK(run.batches == Batches{{2}, {1, 2}});
  CHECK(run.restarts == 0);
}

TEST_CASE("a file that became shorter is read from its beginning, and counted again") {
  FollowedNumbers run;
  run.write("a.jsonl", "{\"n\":1}\n{\"n\":2}\n");
  run.drain();
  run.write("a.jsonl", "{\"n\":7}\n");
  run.drain();
  CHECK(run.restarts == 1);
  CHECK(run.batches == Batches{{1, 2}, {7}});
  CHECK(run.source.written() == 1);
  CHECK(run.source.count() == 1);
}

}  // namespace scaletrain::track
