#include "lib/train/model/buffers.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "lib/checkpoint/checkpoint.h"
#include "lib/core/disk/disk.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/count_reads.h"
#include "tests/dist/ranks.h"
#include "tests/temporary_folder.h"

namespace {

using namespace scaletrain;
using testing::run_ranks;
using train::NamedTensors;

// What rank `rank` has: what differs, what no rank's sum may round, what counts, and nothing.
NamedTensors buffers_of(int rank) {
  return {{"running_mean", at::arange(6, at::kFloat).view({2, 3}) + 10 * rank},
          {"third", at::full({3}, 1.0F / 3)},
          {"small", at::full({}, rank == 0 ? 1e-30 : 0, at::kFloat)},
          {"count", at::full({}, 7 + rank, at::kLong)},
          {"none", at::zeros({0, 4})}};
}

bool same(const NamedTensors& a, const NamedTensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    if (tensor.scalar_type() != b.at(name).scalar_type() || !at::equal(tensor, b.at(name))) {
      return false;
    }
  }
  return true;
}

// `body` with each rank's group and buffers says "fine" on all of `world_size` ranks.
void check_ranks(int world_size,
                 const std::function<std::string(dist::Group&, NamedTensors&)>& body) {
  CAPTURE(world_size);
  for (const auto& result :
       run_ranks({.world_size = world_size}, [&](const core::WorkerEnv& env) -> std::string {
         at::set_num_threads(1);
         dist::Group group(env, at::kCPU, std::chrono::seconds(30));
         NamedTensors own = buffers_of(env.rank);
         return body(group, own);
       })) {
    CHECK(result.text == "fine");
  }
}

TEST_CASE("the mean is that of all ranks, in copies, and of equal values that value") {
  for (const int world_size : {2, 3}) {
    check_ranks(world_size, [](dist::Group& group, NamedTensors& own) -> std::string {
      const NamedTensors mean = train::mean_over_ranks(group, own);
      if (!same(own, buffers_of(group.rank()))) return "its own were changed";
      NamedTensors expected = buffers_of(0);
      expected["running_mean"] +=
          5.0 * (group.world_size() - 1);  // (0 + 10) / 2, (0 + 10 + 20) / 3
      expected["small"].fill_(1e-30 / group.world_size());
      expected["count"].fill_(7 + group.rank());
      for (const auto& [name, tensor] : mean) {
        if (tensor.numel() > 0 && tensor.is_alias_of(own.at(name))) return name + " is no copy";
      }
      return same(mean, expected) ? "fine" : "another mean";
    });
  }
}

TEST_CASE("what is no floating point keeps this rank's value, also where nothing else is there") {
  check_ranks(2, [](dist::Group& group, NamedTensors& own) -> std::string {
    const NamedTensors count{{"count", own.at("count")}};
    return same(train::mean_over_ranks(group, count), count) ? "fine" : "another count";
  });
}

TEST_CASE("rank 0 has the buffers of all ranks, in their order") {
  check_ranks(3, [](dist::Group& group, NamedTensors& own) -> std::string {
    const NamedTensors all = train::gather_ranks(group, own);
    if (group.rank() != 0) return all.empty() ? "fine" : "not on rank 0 alone";
    if (all.size() != own.size()) return "some are missing";
    for (int rank = 0; rank < group.world_size(); ++rank) {
      NamedTensors row;
      for (const auto& [name, tensor] : all) row.emplace(name, tensor[rank]);
      if (!same(row, buffers_of(rank))) return fmt::format("not those of rank {}", rank);
    }
    return "fine";
  });
}

TEST_CASE("each rank gets what it had from a checkpoint; without that all keep rank 0's") {
  const test::TemporaryFolder run;
  check_ranks(3, [&](dist::Group& group, NamedTensors& own) -> std::string {
    const auto save = [&](std::int64_t step, NamedTensors all) {
      checkpoint::FullContents contents;
      contents.state.step = step;
      contents.buffers = std::move(all);
      if (group.rank() == 0) checkpoint::save(core::system_disk(), run.path, contents, {.last = 2});
    };
    save(1, train::gather_ranks(group, own));
    save(2, {});
    group.barrier("saved");
    NamedTensors given = buffers_of(0);
    given.at("running_mean").fill_(-1);
    const dist::Mesh mesh(group, core::MeshPlan(group.world_size()));
    NamedTensors unchanged = given;
    for (auto& [name, tensor] : unchanged) tensor = tensor.clone();
    train::restore_ranks(mesh, given, run.path / "checkpoints/step-00000002");
    if (!same(given, unchanged)) return "something was read";
    train::restore_ranks(mesh, given, run.path / "checkpoints/step-00000001");
    return same(given, buffers_of(group.rank())) ? "fine" : "another rank's";
  });
}

// Ranks 0 and 1, and 2 and 3, have the same data-parallel rank and other parts of the model.
TEST_CASE(
    "buffers are restored by data-parallel rank, and averaged over data-parallel ranks only") {
  const test::TemporaryFolder run;
  check_ranks(4, [&](dist::Group& group, NamedTensors& own) -> std::string {
    const dist::Mesh mesh(group,
                          core::MeshPlan(4, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
    NamedTensors expected = buffers_of(0);
    expected.at("running_mean") += 10 + 10 * mesh.coordinate(core::Axis::kTensor);  // (0 + 20) / 2
    if (!at::equal(train::mean_over_ranks(mesh.data(), own).at("running_mean"),
                   expected.at("running_mean"))) {
      return "another mean";
    }
    checkpoint::FullContents contents;
    contents.state.step = 1;
    contents.buffers = train::gather_ranks(mesh.data(), own);
    if (group.rank() == 0) checkpoint::save(core::system_disk(), run.path, contents, {.last = 1});
    group.barrier("saved");
    train::restore_ranks(mesh, own, run.path / "checkpoints/step-00000001");
    return same(own, buffers_of(2 * mesh.reader())) ? "fine" : "another coordinate's";
  });
}

TEST_CASE("ranks with other parts of one model keep their own") {
  check_ranks(2, [](dist::Group& group, NamedTensors& own) -> std::string {
    const dist::Mesh mesh(group,
                          core::MeshPlan(2, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2}));
    train::restore_ranks(mesh, own, "/nowhere");
    return same(own, buffers_of(group.rank())) ? "fine" : "another rank's";
  });
}

TEST_CASE("one rank exchanges nothing") {
  dist::Group group({}, at::kCPU, std::chrono::seconds(1));
  const NamedTensors own = buffers_of(0);
  CHECK(train::mean_over_ranks(group, own).at("third").is_same(own.at("third")));
  CHECK(train::gather_ranks(group, own).empty());
  CHECK_NOTHROW(train::restore_ranks(dist::Mesh(group, core::MeshPlan(1)), own, "/nowhere"));
}

TEST_CASE("what tensors held comes back, of every type") {
  const NamedTensors live = buffers_of(1);
  train::KeptTensors kept(train::values(live));
  for (const auto& [name, tensor] : live) tensor.fill_(3);
  kept.put_back();
  CHECK(same(live, buffers_of(1)));
  for (const auto& [name, tensor] : live) tensor.fill_(5);
  kept.keep();
  for (const auto& [name, tensor] : live) tensor.fill_(3);
  kept.put_back();
  CHECK(live.at("count").item<std::int64_t>() == 5);
  CHECK(live.at("small").item<float>() == 5);
}

TEST_CASE("what tensors held comes back where a condition on the device says so, unread") {
  const NamedTensors live = buffers_of(1);
  live.at("running_mean").set_data(live.at("running_mean").t());  // another order in memory
  NamedTensors before, after;
  for (const auto& [name, tensor] : live) before[name] = tensor.clone();
  train::KeptTensors kept(train::values(live));
  for (const auto& [name, tensor] : live) {
    tensor.fill_(tensor.is_floating_point() ? std::nan("") : 3);
  }
  CHECK(testing::count_reads([&] { kept.put_back_if(at::ones({})); }) == 0);
  CHECK(same(live, before));
  for (const auto& [name, tensor] : live) tensor.fill_(4);
  for (const auto& [name, tensor] : live) after[name] = tensor.clone();
  kept.put_back_if(at::zeros({}));
  CHECK(same(live, after));
}

}  // namespace
