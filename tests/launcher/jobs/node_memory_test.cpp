#include "launcher/jobs/node_memory.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "lib/recipe/load.h"
#include "tests/format/checkpoint_support.h"
#include "tests/replica/node_support.h"

namespace scaletrain::launcher {
namespace {

recipe::Recipe recipe_in(const std::filesystem::path& folder, const std::string& nodes) {
  return recipe::parse_recipe(
      R"({"name": "r", "model": {"name": "mlp", "num_classes": 10}, "steps": 1,
          "data": {"train": {"shards": "a.tar"}, "image_size": 8}, "batch": {"per_device": 1},
          "optimizer": {"name": "sgd", "lr": 0.1}})",
      "r.json", {"output=" + folder.string(), "checkpoint.replicate={\"nodes\": " + nodes + "}"});
}

}  // namespace

TEST_CASE("a job needs as many other nodes as it asks for") {
  const auto refused = [](const std::string& nodes, int nnodes,
                          std::optional<TaskPlace> task = std::nullopt) {
    Placement placement;
    placement.task = task;
    placement.nnodes = nnodes;
    return test::message_of<core::RecipeError>(
        [&] { check_replicate(recipe_in("/r", nodes), placement); });
  };
  CHECK(refused("1", 2) == "nothing was thrown");
  CHECK(refused("2", 3) == "nothing was thrown");
  CHECK(refused("1", 1) ==
        "/checkpoint/replicate: the job has one node, so there is no memory of another node\n"
        "  start it on several (--nnodes), or: --set checkpoint.replicate=null");
  CHECK(refused("2", 2) ==
        "/checkpoint/replicate: asks for the memory of 2 other nodes, and the job has 1\n"
        "  start it on more (--nnodes), or ask for fewer");
  CHECK(refused("1", 4, TaskPlace{}) ==
        "/checkpoint/replicate: each task of this step has a launcher of its own, and the next one "
        "may be on the same node\n"
        "  start one launcher on each node: srun --ntasks-per-node=1 scaletrain launch");
}

TEST_CASE("a node sends to itself and to the next ones, in a ring") {
  const auto sends = [](const std::vector<std::string>& all, int node, std::int64_t more) {
    return NodeMemory({}, more, test::kSecret).go_on(-1, all, node);
  };
  const std::vector<std::string> all{"a", "b", "c"};
  CHECK(sends(all, 0, 1) == "a b");
  CHECK(sends(all, 2, 1) == "c a");
  CHECK(sends(all, 1, 2) == "b c a");
  CHECK(sends(all, 1, 5) == "b c a");
  CHECK(sends({"a"}, 0, 1).empty());
  CHECK(sends({}, 0, 1).empty());
}

TEST_CASE("nodes that are of no use to each other are warned of") {
  CHECK(test::warnings_of([] { warn_of_memory({"a", "b"}, false); }).empty());
  CHECK(test::warnings_of([] { warn_of_memory({"a"}, false); }) ==
        "warning: /checkpoint/replicate: the job continues on one node, so its checkpoints are not "
        "in the memory of another node; ");
  CHECK(test::warnings_of([] {
          warn_of_memory({"a", "b"}, true);
        }) ==
        "warning: /checkpoint/replicate: all launchers of the job are on one host: if it is lost, "
        "all copies in memory are lost; ");
}

TEST_CASE("no node accepts a checkpoint of a step that rank 0 has not begun") {
  NodeMemory first({}, 1, test::kSecret), second({}, 1, test::kSecret);
  const std::vector<std::string> all{first.address(), second.address()};
  const core::Descriptor file = core::make_beat_file();
  core::Beat beat(file.get());
  first.go_on(3, all, 0);
  first.follow_rank_0(file.get());
  second.go_on(3, all, 1);
  const std::atomic<bool> never = false;
  const auto finish = [&](const NodeMemory& node, std::int64_t step) {
    replica::Peer peer(replica::parse_addresses(node.address(), test::kSecret).front(), never);
    return test::message_of<core::StoppedError>([&] { peer.finish("save", step, "{}"); });
  };
  for (const NodeMemory* const node : {&first, &second}) {
    CHECK(finish(*node, 3) == "nothing was thrown");
    CHECK(finish(*node, 4) ==
          "the memory of node 127.0.0.1: step 4 is beyond step 3, the last one that rank 0 has "
          "begun");
  }
  beat.begin_step(5);
  for (const NodeMemory* const node : {&first, &second}) {
    CHECK(finish(*node, 5) == "nothing was thrown");
    CHECK(finish(*node, 100'000).find("step 100000 is beyond step 5") != std::string::npos);
  }
}

TEST_CASE("a node whose leader does not answer accepts no checkpoint") {
  NodeMemory node({}, 1, test::kSecret);
  std::string lost;
  {
    const NodeMemory leader({}, 1, test::kSecret);
    lost = leader.address();
  }
  node.go_on(3, {lost, node.address()}, 1);
  const std::atomic<bool> never = false;
  replica::Peer peer(replica::parse_addresses(node.address(), test::kSecret).front(), never);
  CHECK(test::message_of<core::StoppedError>([&] {
          peer.finish("save", 3, "{}");
        }).find("does not know the step of rank 0: ") != std::string::npos);
}

TEST_CASE("a node's memory is found by its address, and what it has comes into the run's folder") {
  const test::TemporaryFolder run, other;
  NodeMemory own({"127.0.0.1"}, 1, test::kSecret),
      next({}, 1, test::kSecret);  // one without an address of its own
  core::Disk& disk = core::system_disk();
  const auto addresses =
      replica::parse_addresses(own.address() + " " + next.address(), test::kSecret);
  REQUIRE(addresses.size() == 2);
  replica::SendingDisk sending(disk, addresses);
  const auto checkpoint = test::publish_on(sending, run.path, 5);
  const std::atomic<bool> never = false;
  std::vector<replica::Peer> peers;
  for (const replica::Address& address : addresses) peers.emplace_back(address, never);
  CHECK(peers[0].list().most_bytes > 1'000'000);
  CHECK(replica::finish_save(peers, sending.save(), format::read_manifest(checkpoint)).nodes == 2);

  const recipe::Recipe recipe = recipe_in(other.path, "1");
  CHECK(!fetch_from_memory(recipe, {}, &own, -1));
  CHECK(!fetch_from_memory(recipe, {own.address()}, &own, 5));
  CHECK(own.go_on(4, {"a"}, 0).empty());  // step 5 is of another history
  CHECK(!fetch_from_memory(recipe, {own.address()}, &own, -1));
  const auto found = fetch_from_memory(recipe, {own.address(), next.address()}, &own, -1);
  REQUIRE(found.has_value());
  CHECK(*found == other.path / "checkpoints/step-00000005");
  CHECK(format::check_checkpoint(*found).step == 5);
}

}  // namespace scaletrain::launcher
