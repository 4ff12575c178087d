#include "lib/dist/mesh.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/syscall.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lib/core/log.h"
#include "tests/dist/ranks.h"
#include "tests/temporary_folder.h"

namespace {

using namespace scaletrain;
using namespace std::chrono_literals;
using core::Axis;
using testing::run_ranks;

constexpr std::array kAxes = {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kTensor};

// The sum of 10 to the power of each member's rank in the job: shows who took part.
std::string members(const dist::Mesh& mesh, dist::Group& group) {
  const at::Tensor sum = at::zeros({}, at::kLong);
  std::int64_t own = 1;
  for (int i = 0; i < mesh.world().rank(); ++i) own *= 10;
  sum.fill_(own);
  group.all_reduce_sum(sum, "members").wait();
  return fmt::format("{}", sum.item<std::int64_t>());
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int threads_of_process() {
  int threads = 0;
  for (const auto& ignored : std::filesystem::directory_iterator("/proc/self/task")) {
    (void)ignored;
    ++threads;
  }
  return threads;
}

TEST_CASE("each axis and each view has the ranks of the plan") {
  const auto results = run_ranks({.world_size = 8}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(8, {.pipe = 1, .replica = {}, .shard = 2, .tensor = 2}));
    std::string text;
    for (const Axis axis : kAxes) {
      dist::Group& group = mesh.group(axis);
      text += fmt::format("{}/{} {} ", group.rank(), group.world_size(), members(mesh, group));
      if (group.rank() != mesh.coordinate(axis)) text += "! ";
    }
    for (dist::Group* const view : {&mesh.data(), &mesh.model()}) {
      text += fmt::format("{}/{} {} ", view->rank(), view->world_size(), members(mesh, *view));
    }
    mesh.end("end");
    return text;
  });
  // rank = replica * 4 + shard * 2 + tensor
  const std::vector<std::string> expected = {
      "0/1 1 0/2 10001 0/2 101 0/2 11 0/4 1010101 0/4 1111 ",
      "0/1 10 0/2 100010 0/2 1010 1/2 11 0/4 10101010 1/4 1111 ",
      "0/1 100 0/2 1000100 1/2 101 0/2 1100 1/4 1010101 2/4 1111 ",
      "0/1 1000 0/2 10001000 1/2 1010 1/2 1100 1/4 10101010 3/4 1111 ",
      "0/1 10000 1/2 10001 0/2 1010000 0/2 110000 2/4 1010101 0/4 11110000 ",
      "0/1 100000 1/2 100010 0/2 10100000 1/2 110000 2/4 10101010 1/4 11110000 ",
      "0/1 1000000 1/2 1000100 1/2 1010000 0/2 11000000 3/4 1010101 2/4 11110000 ",
      "0/1 10000000 1/2 10001000 1/2 10100000 1/2 11000000 3/4 10101010 3/4 11110000 "};
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    CHECK(results[rank].text == expected[rank]);
    CHECK(results[rank].status == 0);
  }
}

TEST_CASE("a plain job has one group, and no thread more than without a mesh") {
  const auto results = run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    const int threads = threads_of_process();
    dist::Mesh mesh(world, core::MeshPlan(2));
    dist::Group& alone = mesh.group(Axis::kTensor);
    const at::Tensor five = at::full({1}, 5.0);
    alone.all_reduce_sum(five, "sum").wait();
    alone.broadcast(five, 0, "five").wait();
    alone.barrier("alone");
    const int more = threads_of_process() - threads;
    world.barrier("the end");
    return fmt::format("{} {} {} {} {} {}", &mesh.data() == &world,
                       &mesh.group(Axis::kReplica) == &world, alone.world_size(),
                       alone.process_group() == nullptr, five.item<float>(), more);
  });
  for (const auto& result : results) CHECK(result.text == "true true 1 true 5 0");
}

TEST_CASE("the data view is the replicas' group where nothing is sharded") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
    const std::string found = members(mesh, mesh.data());
    const bool is_same = &mesh.data() == &mesh.group(Axis::kReplica);
    mesh.end("end");
    return fmt::format("{} {}", is_same, found);
  });
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(results[rank].text == (rank % 2 == 0 ? "true 101" : "true 1010"));
  }
}

TEST_CASE("ranks that hold experts together, and those that hold the same, have groups") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(
        world, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 1, .expert = 2}));
    std::string text;
    for (dist::Group* const view : {&mesh.experts(), &mesh.same_experts(), &mesh.model()}) {
      text += fmt::format("{}/{} {} ", view->rank(), view->world_size(), members(mesh, *view));
    }
    mesh.end("end");
    return text;
  });
  CHECK(results[0].text == "0/2 11 0/2 101 0/2 11 ");
  CHECK(results[1].text == "1/2 11 0/2 1010 1/2 11 ");
  CHECK(results[2].text == "0/2 1100 1/2 101 0/2 1100 ");
  CHECK(results[3].text == "1/2 1100 1/2 1010 1/2 1100 ");
}

TEST_CASE(
    "copies of the model whose ranks share experts have groups of their own, and between them") {
  const auto results = run_ranks({.world_size = 8}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(8, {.replica = {}, .context = 2, .expert = 2}));
    std::string text;
    for (dist::Group* const view :
         {&mesh.gradients_of_model(), &mesh.copies_in_model(), &mesh.replicas()}) {
      text += fmt::format("{}/{} {} ", view->rank(), view->world_size(), members(mesh, *view));
    }
    mesh.end("end");
    return text;
  });
  CHECK(results[0].text == "0/4 1111 0/4 1111 0/2 10001 ");
  CHECK(results[5].text == "1/4 11110000 1/4 11110000 1/2 100010 ");
  CHECK(results[7].text == "3/4 11110000 3/4 11110000 1/2 10001000 ");
}

TEST_CASE("replicas of one rank and sharded replicas have the process groups of the mesh axes") {
  const auto results = run_ranks({.world_size = 8}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    std::string text;
    dist::Mesh cut(world, core::MeshPlan(8, {.replica = {}, .shard = 2, .context = 2}));
    text += &cut.replicas() == &cut.group(Axis::kReplica) ? "" : "replicas ";
    text += &cut.copies_in_model() == &cut.group(Axis::kContext) ? "" : "copies ";
    try {
      cut.gradients_of_model();
    } catch (const core::InternalError& error) {
      text += error.what();
    }
    cut.end("end");
    return text;
  });
  CHECK(results[0].text == "mesh: no group of ranks 0 1 2 3");
}

TEST_CASE("one rank opens nothing") {
  const core::WorkerEnv env;  // no port: a store could not be reached
  dist::Group world(env, at::kCPU, 30s);
  dist::Mesh mesh(world, core::MeshPlan(1));
  for (const Axis axis : kAxes) CHECK(mesh.group(axis).world_size() == 1);
  mesh.end("end");
}

TEST_CASE("replicas that part are jobs of their own, whose views are of the other axes") {
  struct PartCase {
    core::MeshSizes sizes;
    int ranks;
  };
  const std::vector<PartCase> cases{{{}, 3},
                                    {{.pipe = 1, .replica = {}, .shard = 2}, 4},
                                    {{.pipe = 2, .replica = {}}, 4},
                                    {{.pipe = 1, .replica = {}, .shard = 2, .tensor = 2}, 8},
                                    {{.pipe = 1, .replica = {}, .shard = 2, .context = 2}, 8},
                                    {{.replica = {}, .expert = 2}, 4},
                                    {{.replica = {}, .expert = 2}, 6},
                                    {{.replica = {}, .shard = 2, .expert = 4}, 8},
                                    {{.replica = {}, .context = 2, .expert = 2}, 8},
                                    {{.pipe = 2, .replica = {}, .expert = 2}, 8},
                                    {{.replica = {}, .tensor = 2, .expert = 2}, 8}};
  for (const PartCase& one : cases) {
    const core::MeshPlan plan(one.ranks, one.sizes);
    const auto results = run_ranks({.world_size = one.ranks}, [&](const core::WorkerEnv& env) {
      dist::Group world(env, at::kCPU, 30s);
      dist::Mesh mesh(world, plan);
      mesh.part_replicas();
      const auto has = [&](dist::Group& group, const std::vector<int>& ranks) {
        std::int64_t expected = 0;
        for (const int rank : ranks) expected += std::int64_t{1} << (4 * rank);
        const at::Tensor sum = at::full({}, std::int64_t{1} << (4 * env.rank), at::kLong);
        group.all_reduce_sum(sum, "members").wait();
        const bool is_there = ranks[static_cast<std::size_t>(group.rank())] == env.rank;
        return sum.item<std::int64_t>() == expected && is_there && group.job_rank() == env.rank;
      };
      std::string wrong;
      const auto check = [&](const char* name, bool is_right) {
        if (!is_right) wrong += std::string(name) + " ";
      };
      const auto group = [&](std::initializer_list<Axis> axes) {
        return plan.in_copy(env.rank, axes);
      };
      check("world", has(mesh.world(), plan.replica_group(env.rank)));
      check("replica", has(mesh.group(Axis::kReplica), group({Axis::kReplica})));
      check("shard", has(mesh.group(Axis::kShard), group({Axis::kShard})));
      check("pipe", has(mesh.group(Axis::kPipe), group({Axis::kPipe})));
      check("data", has(mesh.data(), group(core::kDataAxes)));
      check("copies", has(mesh.copies(), group(core::kCopyAxes)));
      check("gradients", has(mesh.gradients(), group(core::kGradientAxes)));
      check("model", has(mesh.model(), plan.model_group(env.rank)));
      check("replicas", mesh.replicas().world_size() == 1);
      if (plan.experts() > 1) {
        check("experts", has(mesh.experts(), plan.expert_group(env.rank)));
        check("same experts", mesh.same_experts().world_size() == 1);
        check("gradients of the model", &mesh.gradients_of_model() == &mesh.gradients());
        check("copies in the model", &mesh.copies_in_model() == &mesh.copies());
      }
      check("coordinate",
            mesh.rank() == env.rank && mesh.reader() == plan.reader(env.rank) &&
                mesh.coordinate(Axis::kReplica) == plan.coordinate(env.rank, Axis::kReplica));
      // Nobody waits for another replica, nor hears of its loss.
      if (mesh.replica() == 1) raise(SIGKILL);
      for (int i = 0; i < 3; ++i) mesh.world().barrier("alone");
      mesh.end("the end");
      return wrong;
    });
    for (int rank = 0; rank < one.ranks; ++rank) {
      CAPTURE(rank);
      const auto& result = results[static_cast<std::size_t>(rank)];
      const bool is_killed = plan.replica(rank) == 1;
      CHECK(result.status == (is_killed ? 128 + SIGKILL : 0));
      CHECK(result.text.empty());
    }
  }
}

TEST_CASE("a plan of another size is refused") {
  const core::WorkerEnv env;
  dist::Group world(env, at::kCPU, 30s);
  CHECK_THROWS_WITH_AS(dist::Mesh(world, core::MeshPlan(2)),
                       "mesh: a plan of 2 ranks for a job of 1", core::InternalError);
}

TEST_CASE("a killed peer ends the collectives of its groups and the world's, by the job's rank") {
  const auto results = run_ranks({.world_size = 4}, [](const core::WorkerEnv& env) -> std::string {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 2, .tensor = 1}));
    world.barrier("ready");
    if (env.rank == 3) raise(SIGKILL);
    const char* const name = env.rank == 2 ? "gather" : "norm";  // 2 shares its shard with 3
    dist::Group& group = env.rank == 2 ? mesh.group(Axis::kShard) : world;
    try {
      for (int step = 0; step < 2; ++step) group.all_reduce_sum(at::ones({64}), name).wait();
    } catch (const core::StoppedError& error) {
      const std::string expected = fmt::format(
          "rank {}: collective \"{}\" was not completed: a peer was lost or the timeout expired (",
          env.rank, name);
      return std::string(error.what()).starts_with(expected) ? "stopped" : error.what();
    }
    return "completed";
  });
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(results[rank].text == "stopped");
    CHECK(results[rank].seconds < 10);
  }
}

TEST_CASE("no rank ends before all do, and the end is quiet") {
  for (const bool whole : {true, false}) {  // of the job's one group, or of a mesh of several
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const auto results = run_ranks({.world_size = 4}, [&](const core::WorkerEnv& env) {
      std::string said;
      core::set_warning_listener([&](const std::string& line) { said += line; });
      dist::Group world(env, at::kCPU, 30s);
      dist::Mesh mesh(world,
                      core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 2, .tensor = 1}));
      if (env.rank == 3) {
        pollfd left{.fd = ends[0], .events = POLLIN, .revents = 0};
        if (poll(&left, 1, 300) == 1) said += "a rank has left";
      }
      if (whole) {
        world.end("end");
      } else {
        mesh.end("end");
      }
      if (write(ends[1], "x", 1) != 1) said += "no pipe";
      core::set_warning_listener({});
      return said;
    });
    close(ends[0]);
    close(ends[1]);
    for (const auto& result : results) CHECK(result.text.empty());
  }
}

// A rank that stands still keeps its connections: Gloo waits, and hears no signal meanwhile.
TEST_CASE("the launcher's word ends the wait in a group of an axis") {
  const core::Descriptor file = core::make_beat_file();
  const test::TemporaryFolder folder;
  std::fflush(nullptr);  // or the rank writes it once more
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const auto results =
      run_ranks({.world_size = 4}, [&](const core::WorkerEnv& given) -> std::string {
        core::WorkerEnv env = given;
        if (env.rank == 0) {
          env.error_file = folder.file("error.json");
          if (std::freopen(folder.file("errors").c_str(), "w", stderr) == nullptr ||
              std::freopen(folder.file("output").c_str(), "w", stdout) == nullptr) {
            return "no files";
          }
          std::fputs("not yet written", stdout);
        }
        dist::Group world(env, at::kCPU, 60s, env.rank == 0 ? core::Beat(file.get()) : core::Beat(),
                          {},
                          dist::CpuExchange::kGloo);  // which does not come back from an abort
        dist::Mesh mesh(world,
                        core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 2, .tensor = 1}));
        world.barrier("ready");
        pid_t other = getpid();
        if (env.rank == 1) {  // does nothing until its neighbour has left
          if (read(ends[0], &other, sizeof other) != sizeof other) return "no pipe";
          const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, other, 0));
          pollfd watched{.fd = pidfd, .events = POLLIN, .revents = 0};
          return poll(&watched, 1, 50'000) == 1 ? "frozen" : "it never left";
        }
        if (env.rank != 0) return "done";
        if (write(ends[1], &other, sizeof other) != sizeof other) return "no pipe";
        core::report_peer_lost(file.get());
        mesh.group(Axis::kShard).barrier("never");
        return "completed";
      });
  close(ends[0]);
  close(ends[1]);
  CHECK(results[0].status == 75);
  const std::string cause =
      R"(rank 0: collective "never" was not completed: a peer was lost or the timeout expired (the launcher)";
  const auto json = nlohmann::json::parse(text_of(folder.file("error.json")));
  CHECK(json.at("message").at("message").get<std::string>().starts_with(cause));
  CHECK(text_of(folder.file("errors")).find(cause) != std::string::npos);
  CHECK(text_of(folder.file("output")) == "not yet written");
  CHECK(results[1].text == "frozen");
  CHECK(results[0].seconds < 30);
}

}  // namespace
