#include "lib/dist/store_board.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "lib/core/clock.h"
#include "lib/dist/group.h"
#include "lib/dist/store.h"
#include "tests/dist/ranks.h"

namespace scaletrain::dist {
namespace {

constexpr std::chrono::seconds kLimit{20};

// What `board` has at `key` as soon as it has something.
std::string awaited(core::Board& board, const std::string& key) {
  for (;;) {
    std::string text = board.get(key);
    if (!text.empty()) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

TEST_CASE("what one rank puts down others read, and what nobody has put down is empty at once") {
  const auto results = testing::run_ranks({.world_size = 3}, [](const core::WorkerEnv& env) {
    Group group(env, at::kCPU, kLimit);
    const auto board = group.open_board("a"), other = group.open_board("b");
    if (env.rank == 1) {
      board->put("key", "one");
      board->put("key", "two");
      other->put("key", std::string(1 << 20, 'x'));
    }
    group.barrier("it is there");
    std::string text = board->get("key") + board->get("none") + awaited(*other, "key").substr(0, 3);
    group.end("the end");
    return text;
  });
  for (const testing::RankResult& result : results) CHECK(result.text == "twoxxx");
}

TEST_CASE("a board is read while its store is waited in, and a store that is gone is an error") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    const auto store = open_store(env, kLimit);
    const auto board = open_board(*store, "board", env.rank);
    if (env.rank == 0) {
      awaited(*board, "heard");
      return std::string("ends");  // and the store with it
    }
    std::jthread waiter([&store] {
      try {
        store->wait({"never"}, std::chrono::seconds(3));
      } catch (const std::exception&) {  // time is up, or the store is gone
      }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const core::SteadyTime begin = core::now();
    board->put("heard", "yes");
    const bool is_quick = core::seconds_since(begin) < 1;
    try {
      for (;;) {
        board->put("key", "again");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    } catch (const core::StoppedError& error) {
      return std::string(is_quick ? "quick, " : "slow, ") + error.place() + ": " +
             error.found().substr(0, 33);
    }
  });
  CHECK(results[0].text == "ends");
  CHECK(results[1].text == "quick, rank 1: the job's store does not answer (");
}

TEST_CASE("a single rank has no key-value store") {
  const Group group(core::WorkerEnv{}, at::kCPU, kLimit);
  CHECK(group.open_board("a") == nullptr);
}

}  // namespace scaletrain::dist
