#include "lib/data/order/repeated_order.h"

#include <doctest/doctest.h>

#include <map>

#include "lib/data/loader/make_order.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

std::shared_ptr<const Order> plain() {
  return std::make_shared<IndexedOrder>(5, std::vector<std::int64_t>{300, 200, 500}, 0);
}

std::pair<std::int64_t, std::int64_t> pair_of(const SamplePlace& place) {
  return {place.shard, place.sample};
}

}  // namespace

TEST_CASE("a global batch has the next samples of the epoch's order, each so many times") {
  for (const std::int64_t repeats : {1, 2, 3, 4, 7}) {
    for (const std::int64_t batch : {8, 24, 32, 50}) {
      CAPTURE(repeats);
      CAPTURE(batch);
      const auto once = plain();
      const RepeatedOrder order(once, repeats, batch);
      CHECK(order.size() == 1000);
      for (std::int64_t step = 0; step < 1000 / batch; ++step) {
        std::map<std::pair<std::int64_t, std::int64_t>, int> seen, expected;
        for (std::int64_t turn = step * batch; turn < (step + 1) * batch; ++turn) {
          ++seen[pair_of(order.at(3, turn))];
          ++expected[pair_of(once->at(3, turn / repeats))];
        }
        CHECK(seen == expected);
      }
    }
  }
}

TEST_CASE("neighbours are different samples, and blocks of a batch share the samples") {
  const RepeatedOrder order(plain(), 3, 32);
  for (std::int64_t p = 0; p < 992; p += 2) CHECK(!(order.at(0, p) == order.at(0, p + 1)));
  for (std::int64_t p = 0; p < 992; p += 8) {
    std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
    for (std::int64_t i = p; i < p + 8; ++i) ++seen[pair_of(order.at(0, i))];
    CHECK(seen.size() == 8);
  }
}

TEST_CASE("one time each is the plain order, and more than a batch is one sample a batch") {
  const auto once = plain();
  const RepeatedOrder order(once, 1, 32), many(once, 20, 8);
  for (std::int64_t p = 0; p < 1000; ++p) {
    CHECK(order.at(1, p) == once->at(1, p));
    CHECK(many.at(1, p) == once->at(1, p / 20));
  }
}

TEST_CASE("make_order repeats what the recipe asks for") {
  const TemporaryFolder folder;
  scaletrain::recipe::Source source;
  source.shards = {folder.write("a.tar", grey_shard(0, 40))};
  const auto dataset = open_dataset(source, "");
  const auto order = make_order(dataset, {.seed = 9, .repeats = 4, .global_batch = 8});
  const auto once = make_order(dataset, {.seed = 9});
  CHECK(order->at(2, 0) == once->at(2, 0));
  CHECK(order->at(2, 2) == once->at(2, 0));
  CHECK(order->at(2, 39) == once->at(2, 9));
  scaletrain::core::Philox draws(9, scaletrain::core::DrawPurpose::kReplacement, 2, 0);
  CHECK(order->replacement(2, 0, draws).shard == 0);
}
