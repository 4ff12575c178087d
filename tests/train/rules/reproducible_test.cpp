#include "lib/train/rules/reproducible.h"

#include <doctest/doctest.h>

using scaletrain::checkpoint::TrainState;
using scaletrain::train::differences;

TEST_CASE("the same process continues bit for bit; whatever differs is named with both values") {
  TrainState was;
  was.device = "cpu";
  was.world_size = 2;
  was.threads = 1;
  was.cpu_capability = "AVX2";
  was.torch_version = "2.11.0";
  TrainState now = was;
  CHECK(differences(was, now).empty());
  now.device = "NVIDIA H200";
  CHECK(differences(was, now) == std::vector<std::string>{"device NVIDIA H200, was cpu"});
  now = was;
  now.world_size = 4;
  now.cpu_capability = "AVX512";
  CHECK(differences(was, now) ==
        std::vector<std::string>{"ranks 4, was 2", "CPU capability AVX512, was AVX2"});

  now = was;
  now.exchange = "shm";
  CHECK(differences(was, now).empty());  // not said before
  was.exchange = "gloo";
  CHECK(differences(was, now).empty());  // of two numbers the sum is the same
  was.world_size = now.world_size = 3;
  CHECK(differences(was, now) == std::vector<std::string>{"exchange over shm, was gloo"});
  was.world_size = 2;
  was.exchange = "";

  now = was;
  now.order_version = 1;
  now.random_version = 2;
  CHECK(differences(was, now) ==
        std::vector<std::string>{"data order version 1, was 0",
                                 "version of the random numbers 2, was 1"});

  now = was;
  now.per_device = 16;
  CHECK(differences(was, now).empty());  // not told before
  was.per_device = 32;
  CHECK(differences(was, now) ==
        std::vector<std::string>{"samples per device of the streamed order 16, was 32"});

  now = was;
  now.set_digest = "1";
  CHECK(differences(was, now).empty());
  was.set_digest = "2";
  CHECK(differences(was, now) == std::vector<std::string>{"the training set holds other samples"});

  now = was;
  now.index_digest = "1";
  CHECK(differences(was, now).empty());
  was.index_digest = "2";
  CHECK(differences(was, now) == std::vector<std::string>{"the training set holds other samples"});

  now = was;
  now.set_samples = 1398;
  CHECK(differences(was, now).empty());  // not counted before
  was.set_samples = 1400;
  CHECK(differences(was, now) ==
        std::vector<std::string>{"samples of the training set 1398, was 1400"});
}

TEST_CASE(
    "a mesh is kept by its sizes, that of context behind the others where ranks share sequences") {
  using scaletrain::core::MeshPlan;
  using scaletrain::train::mesh_numbers;
  using Numbers = std::vector<std::int64_t>;
  CHECK(mesh_numbers(MeshPlan(4)) == Numbers{});
  CHECK(mesh_numbers(MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2})) ==
        Numbers{1, 2, 1, 2});
  CHECK(mesh_numbers(MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .context = 2})) ==
        Numbers{1, 2, 1, 1, 2});
  TrainState was, now;
  was.mesh = {1, 2, 1, 1, 2};
  now.mesh = {1, 2, 1, 2};
  CHECK(differences(was, now) ==
        std::vector<std::string>{"mesh replica 2 x tensor 2, was replica 2 x context 2"});
}
