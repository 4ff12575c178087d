#include "lib/parallel/gather_ahead.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "lib/core/clock.h"
#include "lib/dist/fake/network.h"

namespace {

using namespace scaletrain;
using parallel::GatherAhead;

// Blocks that take 5 ms each to gather.
struct Blocks {
  explicit Blocks(std::size_t count) : wholes(count, at::zeros({2})) {}

  GatherAhead ahead() {
    return {wholes.size(), [this](std::size_t block) {
              order.push_back(block);
              return group.all_gather(wholes[block], at::ones({1}), "parameters");
            }};
  }
  // Whether the newest gathering is on its way, not waited for, and those before it are over; and
  // no third one was ever under way.
  bool is_one_ahead() const {
    const std::vector<dist::FakeCall> calls = network->calls();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (i + 1 < calls.size() && calls[i].done > core::now()) return false;
      if (i > 1 && calls[i].asked < calls[i - 2].done) return false;
    }
    return calls.back().waited_s == 0;
  }
  bool are_over() const { return network->calls().back().done <= core::now(); }

  std::shared_ptr<dist::FakeNetwork> network = std::make_shared<dist::FakeNetwork>(
      dist::FakeJob{.ranks_per_node = 2, .inside = {.latency_s = 0.005}});
  dist::Group group{network, at::kCPU};
  std::vector<at::Tensor> wholes;
  std::vector<std::size_t> order;  // that gatherings have begun in
};

TEST_CASE("blocks are gathered in order, the next one while one is used, and two at a time") {
  Blocks blocks(4);
  GatherAhead ahead = blocks.ahead();
  ahead.await(0);
  ahead.settle();
  CHECK(blocks.order.empty());  // nothing has changed
  CHECK(ahead.rest() == 0);
  for (int update = 0; update < 2; ++update) {
    blocks.order.clear();
    ahead.start();
    CHECK(blocks.order == std::vector<std::size_t>{0, 1});
    CHECK(ahead.rest() == 2);
    ahead.await(0);
    CHECK(blocks.order == std::vector<std::size_t>{0, 1});
    CHECK(blocks.is_one_ahead());
    ahead.await(1);
    CHECK(blocks.order == std::vector<std::size_t>{0, 1, 2});
    CHECK(blocks.is_one_ahead());
    ahead.await(0);  // is there
    CHECK(blocks.is_one_ahead());
    ahead.await(3);
    CHECK(blocks.order == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(ahead.rest() == 0);
    CHECK(blocks.are_over());
  }
}

TEST_CASE("one that is needed early has those before it begin, and all end where they must") {
  Blocks blocks(5);
  GatherAhead ahead = blocks.ahead();
  ahead.start();
  ahead.await(3);
  CHECK(blocks.order == std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(blocks.is_one_ahead());
  ahead.settle();
  CHECK(blocks.are_over());

  ahead.start();
  ahead.settle();
  CHECK(blocks.order.size() == 10);
  CHECK(ahead.rest() == 0);
  CHECK(blocks.are_over());
}

TEST_CASE("without blocks nothing is gathered") {
  GatherAhead none;
  none.start();
  none.settle();
  CHECK(none.rest() == 0);
}

}  // namespace
