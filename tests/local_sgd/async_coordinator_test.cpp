#include "lib/local_sgd/async_coordinator.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>

#include "lib/local_sgd/hub_messages.h"
#include "lib/local_sgd/tensor_bytes.h"

namespace {

using namespace scaletrain;
using dist::HubMessage;
using local_sgd::as_floats;
using local_sgd::AsyncCoordinator;

// A hub without connections: what is sent is kept until it is taken.
class HubOnPaper {
 public:
  using Parts = std::vector<at::Tensor>;

  // `places`: initial weights of each place.
  HubOnPaper(int replicas, std::int64_t staleness, const std::vector<Parts>& places)
      : rules_({.replicas = replicas, .places = static_cast<int>(places.size())}, 0, staleness) {
    for (int rank = 0; rank < static_cast<int>(places.size()); ++rank) {
      for (const at::Tensor& part : places[static_cast<std::size_t>(rank)]) {
        hear(rank, {.kind = local_sgd::kInitialPart, .body = local_sgd::as_bytes(part)});
        CHECK(take(rank).kind == local_sgd::kInitialPart);
      }
    }
  }

  void hear(int rank, HubMessage message) { rules_.received(rank, std::move(message), send_); }
  void lose(int rank) { rules_.lost(rank, send_); }
  // An exchange of one part that has learned as much.
  void learn(int rank, std::int64_t step, double learned) {
    give(rank, 0, learned);
    hear(rank, {.kind = local_sgd::kSynchronize, .step = step});
  }
  void give(int rank, std::int32_t part, double learned) {
    hear(rank, {.kind = local_sgd::kPart,
                .number = part,
                .body = local_sgd::as_bytes(at::full({2}, learned))});
  }

  bool has_answer(int rank) const { return !sent_.at(rank).empty(); }
  HubMessage take(int rank) {
    REQUIRE(has_answer(rank));
    HubMessage message = std::move(sent_[rank].front());
    sent_[rank].erase(sent_[rank].begin());
    return message;
  }
  double weight(int rank) { return as_floats(take(rank).body)[1].item<double>(); }
  local_sgd::ReplicaProgress progress(int replica) const {
    return rules_.progress()[static_cast<std::size_t>(replica)];
  }

 private:
  std::map<int, std::vector<HubMessage>> sent_ = {{0, {}}, {1, {}}, {2, {}}, {3, {}}};
  dist::HubRules::Send send_ = [this](int rank, HubMessage message) {
    sent_[rank].push_back(std::move(message));
  };
  AsyncCoordinator rules_;
};

HubOnPaper hub_of(int replicas, std::int64_t staleness) {
  return {replicas, staleness, {HubOnPaper::Parts{at::ones({2})}}};
}

TEST_CASE("with staleness 0 all wait for all, and go on from the mean") {
  HubOnPaper hub = hub_of(4, 0);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK_FALSE(hub.has_answer(0));
    hub.learn(rank, 8, rank);
  }
  // 1 + (0 + 1 + 2 + 3) / 4
  for (int rank = 0; rank < 4; ++rank) CHECK(hub.weight(rank) == 2.5);
}

TEST_CASE("a replica waits where it is more exchanges ahead of the slowest than allowed") {
  HubOnPaper hub = hub_of(2, 2);
  hub.learn(0, 8, 1);
  CHECK(hub.weight(0) == 1.5);  // its half, without the other's
  hub.learn(0, 16, 1);
  CHECK(hub.weight(0) == 2);
  hub.learn(0, 24, 1);
  CHECK_FALSE(hub.has_answer(0));  // 3 ahead
  hub.learn(1, 8, -1);
  CHECK(hub.weight(1) == 2);  // 2.5 - 0.5
  CHECK(hub.weight(0) == 2);  // what is there when it is answered
  CHECK(hub.progress(0).steps == 24);
  CHECK(hub.progress(1).steps == 8);
}

TEST_CASE(
    "a replica that waits for another continues if that one is lost or leaves, or if all stop") {
  for (const std::string how : {"lost", "leaves", "stop"}) {
    CAPTURE(how);
    HubOnPaper hub = hub_of(2, 0);
    hub.learn(0, 8, 1);
    CHECK_FALSE(hub.has_answer(0));
    if (how == "lost") hub.lose(1);
    if (how == "leaves") hub.hear(1, {.kind = local_sgd::kLeave});
    if (how == "stop") hub.hear(1, {.kind = local_sgd::kStop});
    CHECK(hub.has_answer(1) == (how == "leaves"));
    const HubMessage answer = hub.take(0);
    CHECK(as_floats(answer.body)[0].item<double>() == 1.5);
    CHECK(answer.number == (how == "stop" ? local_sgd::kStopFlag : 0));
    CHECK(hub.progress(1).is_lost == (how == "lost"));
    CHECK(hub.progress(1).has_left == (how == "leaves"));
  }
}

TEST_CASE("what a replica learns counts by how many there were when it took its weights") {
  HubOnPaper hub = hub_of(3, 10);
  hub.lose(2);
  hub.learn(0, 8, 3);  // of weights from when there were three
  CHECK(hub.weight(0) == 2);
  hub.learn(0, 16, 3);  // of two
  CHECK(hub.weight(0) == 3.5);
}

TEST_CASE("one that is lost counts until a replica takes weights again") {
  HubOnPaper hub = hub_of(3, 10);
  hub.learn(0, 8, 3);
  CHECK(hub.weight(0) == 2);
  hub.lose(2);
  hub.learn(0, 16, 3);  // of weights from when there were three
  CHECK(hub.weight(0) == 3);
  hub.learn(0, 24, 3);  // of two
  CHECK(hub.weight(0) == 4.5);
}

TEST_CASE("one that leaves as training is over still counts, one that leaves before does not") {
  for (const bool is_over : {false, true}) {
    CAPTURE(is_over);
    HubOnPaper hub = hub_of(2, 10);
    hub.hear(1, {.kind = local_sgd::kLeave, .number = is_over ? local_sgd::kFinished : 0});
    hub.learn(0, 8, 3);
    CHECK(hub.weight(0) == 2.5);  // of weights from when both were there
    hub.learn(0, 16, 3);
    CHECK(hub.weight(0) == (is_over ? 4 : 5.5));
  }
}

TEST_CASE("one that has left is not lost when its connection ends") {
  HubOnPaper hub = hub_of(2, 0);
  hub.hear(1, {.kind = local_sgd::kLeave, .number = local_sgd::kFinished});
  CHECK(hub.take(1).kind == local_sgd::kLeave);
  hub.lose(1);
  CHECK_FALSE(hub.progress(1).is_lost);
}

TEST_CASE("rank 0 is notified when all others have left or are lost, and takes their progress") {
  HubOnPaper hub = hub_of(3, 4);
  hub.hear(0, {.kind = local_sgd::kLeave, .number = local_sgd::kFinished});
  hub.take(0);
  hub.hear(0, {.kind = local_sgd::kAwaitAll});
  hub.learn(1, 8, 3);
  hub.hear(1, {.kind = local_sgd::kLeave, .number = local_sgd::kFinished});
  CHECK_FALSE(hub.has_answer(0));
  hub.lose(2);
  CHECK(hub.take(0).kind == local_sgd::kAwaitAll);
  CHECK(hub.weight(0) == 2);
  hub.lose(1);  // its connection ends
  hub.hear(0, {.kind = local_sgd::kGiveUp});
  CHECK_FALSE(hub.has_answer(0));  // it has heard that once
  // Who has left hears nothing of that.
  CHECK(hub.take(1).kind == local_sgd::kPart);
  CHECK(hub.take(1).kind == local_sgd::kLeave);
  CHECK_FALSE(hub.has_answer(1));
}

TEST_CASE("an exchange is of all parts that were given, answered together") {
  HubOnPaper hub(2, 0, {HubOnPaper::Parts{at::ones({2}), at::zeros({2}), at::ones({2})}});
  for (const int rank : {0, 1}) {
    hub.give(rank, 0, 1);
    hub.give(rank, 1, 2);
    CHECK_FALSE(hub.has_answer(0));
    hub.hear(rank, {.kind = local_sgd::kSynchronize, .step = 8});
  }
  for (const int rank : {0, 1}) {
    CHECK(hub.weight(rank) == 2);
    CHECK(hub.weight(rank) == 2);
    CHECK_FALSE(hub.has_answer(rank));
  }
}

// Two replicas of two ranks each, 0 and 1, and 2 and 3; the second place's part begins with 10.
HubOnPaper hub_of_pairs(std::int64_t staleness) {
  return {2, staleness, {HubOnPaper::Parts{at::ones({2})}, HubOnPaper::Parts{at::full({2}, 10.0)}}};
}

TEST_CASE("what the ranks of a replica have learned is added when all of them have given it") {
  HubOnPaper hub = hub_of_pairs(4);
  hub.learn(0, 8, 2);
  CHECK_FALSE(hub.has_answer(0));
  hub.learn(3, 8, 20);
  hub.learn(2, 8, 4);  // whole before the first
  CHECK(hub.weight(2) == 3);
  CHECK(hub.weight(3) == 20);
  CHECK(hub.progress(1).steps == 8);
  CHECK(hub.progress(0).steps == 0);
  hub.learn(1, 8, 6);
  CHECK(hub.weight(0) == 4);
  CHECK(hub.weight(1) == 23);
  hub.learn(0, 16, 2);
  CHECK_FALSE(hub.has_answer(0));  // for the other one comes anew each time
  hub.learn(1, 16, 6);
  CHECK(hub.weight(0) == 5);
  CHECK(hub.weight(1) == 26);
}

TEST_CASE("with one of its ranks a replica is lost, and what the others have given") {
  HubOnPaper hub = hub_of_pairs(0);
  hub.learn(0, 8, 2);
  hub.learn(1, 8, 2);
  hub.learn(2, 8, 100);
  CHECK_FALSE(hub.has_answer(0));
  hub.lose(3);
  CHECK(hub.weight(0) == 2);
  CHECK(hub.weight(1) == 11);
  CHECK(hub.progress(1).is_lost);
  hub.learn(3, 8, 100);  // nobody says so, and it counts for nothing
  hub.lose(2);
  hub.learn(0, 16, 2);
  hub.learn(1, 16, 2);
  CHECK(hub.weight(0) == 4);  // of one replica
  CHECK(hub.weight(1) == 13);
  CHECK_FALSE(hub.has_answer(2));
}

TEST_CASE("a replica has left when all of its ranks have, and its weights are final then") {
  HubOnPaper hub = hub_of_pairs(4);
  const HubMessage leave{.kind = local_sgd::kLeave, .number = local_sgd::kFinished};
  hub.hear(2, leave);
  hub.lose(2);  // its connection ends
  CHECK_FALSE(hub.progress(1).has_left);
  hub.hear(0, {.kind = local_sgd::kAwaitAll});
  CHECK_FALSE(hub.has_answer(0));
  hub.hear(3, leave);
  CHECK(hub.progress(1).has_left);
  CHECK_FALSE(hub.progress(1).is_lost);
  CHECK(hub.take(0).kind == local_sgd::kAwaitAll);
  CHECK(hub.weight(0) == 1);
  hub.hear(1, {.kind = local_sgd::kAwaitAll});
  CHECK(hub.take(1).kind == local_sgd::kAwaitAll);
  CHECK(hub.weight(1) == 10);
}

TEST_CASE("rank 0 gives up all that it waits for at the end, and takes nothing from them later") {
  HubOnPaper hub = hub_of_pairs(4);
  hub.learn(3, 8, 100);
  for (const int rank : {0, 1}) hub.hear(rank, {.kind = local_sgd::kLeave});
  for (const int rank : {0, 1}) CHECK(hub.take(rank).kind == local_sgd::kLeave);
  for (const int rank : {0, 1}) hub.hear(rank, {.kind = local_sgd::kAwaitAll});
  CHECK_FALSE(hub.has_answer(1));
  hub.hear(0, {.kind = local_sgd::kGiveUp});
  hub.learn(2, 8, 100);  // too late
  hub.learn(3, 8, 100);
  for (const int rank : {0, 1}) {
    CHECK(hub.take(rank).kind == local_sgd::kAwaitAll);
    CHECK(hub.weight(rank) == (rank == 0 ? 1 : 10));
  }
  for (const int rank : {2, 3}) {
    CHECK_FALSE(hub.has_answer(rank));
    hub.hear(rank, {.kind = local_sgd::kLeave});
    CHECK(hub.take(rank).kind == local_sgd::kLeave);
  }
  CHECK_FALSE(hub.progress(1).is_lost);
}

}  // namespace
