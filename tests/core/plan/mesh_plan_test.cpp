#include "lib/core/plan/mesh_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

constexpr std::array<Axis, kAxes> kAll = {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kContext,
                                          Axis::kTensor};

std::string refusal(int world_size, const MeshSizes& asked) {
  try {
    const MeshPlan plan(world_size, asked);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

// Every mesh of these sizes, with one to three replicas.
template <class Check>
void for_each_mesh(const Check& check) {
  for (const int pipe : {1, 2, 3}) {
    for (const int replica : {1, 2, 3}) {
      for (const int shard : {1, 2, 4}) {
        for (const int context : {1, 2}) {
          for (const int tensor : {1, 2, 3}) {
            const int world = pipe * replica * shard * context * tensor;
            CAPTURE(pipe);
            CAPTURE(replica);
            CAPTURE(shard);
            CAPTURE(context);
            CAPTURE(tensor);
            check(MeshPlan(world, {.pipe = pipe,
                                   .replica = {},
                                   .shard = shard,
                                   .context = context,
                                   .tensor = tensor}));
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE(
    "the first stage of a pipeline counts samples, the last one their losses, each context rank "
    "its "
    "own") {
  for_each_mesh([](const MeshPlan& plan) {
    std::set<int> counts;                  // data-parallel ranks
    std::set<std::pair<int, int>> losses;  // with places along context
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      const int stage = plan.coordinate(rank, Axis::kPipe);
      if (plan.counts(rank)) CHECK((stage == 0 && counts.insert(plan.reader(rank)).second));
      if (!plan.counts_losses(rank)) continue;
      const std::pair<int, int> own{plan.reader(rank), plan.coordinate(rank, Axis::kContext)};
      CHECK((stage == plan.size(Axis::kPipe) - 1 && losses.insert(own).second));
    }
    CHECK(static_cast<int>(counts.size()) == plan.readers());
    CHECK(static_cast<int>(losses.size()) == plan.readers() * plan.size(Axis::kContext));
  });
}

TEST_CASE("without sizes every rank is a replica that reads, and rank 0 writes") {
  const MeshPlan plan(3);
  CHECK(plan.size(Axis::kReplica) == 3);
  CHECK(plan.size(Axis::kPipe) == 1);
  CHECK(plan.readers() == 3);
  CHECK(plan.group(1, kDataAxes) == std::vector<int>{0, 1, 2});
  CHECK(plan.group(1, {Axis::kTensor}) == std::vector<int>{1});
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(plan.reader(rank) == rank);
    CHECK(plan.reads(rank));
    CHECK(plan.counts(rank));
    CHECK(plan.writes(rank) == (rank == 0));
  }
}

TEST_CASE("the tensor axis is innermost, the pipeline outermost") {
  const MeshPlan plan(16, {.pipe = 2, .replica = {}, .shard = 2, .tensor = 2});
  struct Row {
    int rank;
    std::array<int, kAxes> place;  // pipe, replica, shard, context, tensor
    int reader;
    bool reads, counts, writes;
  };
  for (const Row& row :
       {Row{0, {0, 0, 0, 0, 0}, 0, true, true, true},
        Row{1, {0, 0, 0, 0, 1}, 0, false, false, true},
        Row{2, {0, 0, 1, 0, 0}, 1, true, true, true}, Row{6, {0, 1, 1, 0, 0}, 3, true, true, false},
        Row{8, {1, 0, 0, 0, 0}, 0, true, false, true},
        Row{15, {1, 1, 1, 0, 1}, 3, false, false, false}}) {
    CAPTURE(row.rank);
    for (const Axis axis : kAll) {
      CHECK(plan.coordinate(row.rank, axis) == row.place[static_cast<std::size_t>(axis)]);
    }
    CHECK(plan.reader(row.rank) == row.reader);
    CHECK(plan.reads(row.rank) == row.reads);
    CHECK(plan.counts(row.rank) == row.counts);
    CHECK(plan.writes(row.rank) == row.writes);
  }
  CHECK(plan.group(6, {Axis::kTensor}) == std::vector<int>{6, 7});
  CHECK(plan.group(6, {Axis::kShard}) == std::vector<int>{4, 6});
  CHECK(plan.group(6, {Axis::kReplica}) == std::vector<int>{2, 6});
  CHECK(plan.group(6, {Axis::kPipe}) == std::vector<int>{6, 14});
  CHECK(plan.group(6, kDataAxes) == std::vector<int>{0, 2, 4, 6});
  CHECK(plan.group(6, {Axis::kTensor, Axis::kPipe}) == std::vector<int>{6, 7, 14, 15});
  CHECK(plan.group(6, {}) == std::vector<int>{6});
}

TEST_CASE("context stands between shard and tensor: those along it have the same samples") {
  const MeshPlan plan(16, {.pipe = 1, .replica = {}, .shard = 2, .context = 2, .tensor = 2});
  CHECK(plan.readers() == 4);
  CHECK(plan.group(5, {Axis::kContext}) == std::vector<int>{5, 7});
  CHECK(plan.group(5, {Axis::kShard}) == std::vector<int>{1, 5});
  CHECK(plan.group(5, kGradientAxes) == std::vector<int>{1, 3, 5, 7, 9, 11, 13, 15});
  CHECK(plan.group(5, kCopyAxes) == std::vector<int>{5, 7, 13, 15});
  CHECK(plan.group(5, kModelAxes) == std::vector<int>{0, 1, 4, 5});
  CHECK(plan.reader(2) == plan.reader(0));
  CHECK_FALSE(plan.counts(2));
  CHECK_FALSE(plan.writes(2));
  CHECK(plan.counts_losses(2));
  CHECK_FALSE(plan.counts_losses(3));
}

TEST_CASE("the groups of any axes divide the world, and two that share no axis meet once") {
  for_each_mesh([](const MeshPlan& plan) {
    for (const std::initializer_list<Axis> axes :
         {std::initializer_list<Axis>{},
          {Axis::kPipe},
          {Axis::kReplica},
          {Axis::kShard},
          {Axis::kTensor},
          kDataAxes,
          kGradientAxes,
          kCopyAxes,
          {Axis::kShard, Axis::kTensor},
          {Axis::kPipe, Axis::kReplica, Axis::kShard, Axis::kContext, Axis::kTensor}}) {
      std::map<std::vector<int>, int> members;
      for (int rank = 0; rank < plan.world_size(); ++rank) {
        const std::vector<int> group = plan.group(rank, axes);
        CHECK(static_cast<int>(group.size()) == plan.size(axes));
        CHECK(std::set<int>(group.begin(), group.end()).count(rank) == 1);
        CHECK(std::is_sorted(group.begin(), group.end()));
        ++members[group];
      }
      std::set<int> seen;
      for (const auto& [group, times] : members) {
        CHECK(times == plan.size(axes));  // each member names the same group
        for (const int rank : group) CHECK(seen.insert(rank).second);
      }
      CHECK(static_cast<int>(seen.size()) == plan.world_size());
    }
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      const std::vector<int> data = plan.group(rank, kDataAxes);
      const std::vector<int> tensor = plan.group(rank, {Axis::kTensor});
      std::vector<int> both;
      std::set_intersection(data.begin(), data.end(), tensor.begin(), tensor.end(),
                            std::back_inserter(both));
      CHECK(both == std::vector<int>{rank});
    }
  });
}

TEST_CASE("a rank stands in a group where its coordinate says") {
  for_each_mesh([](const MeshPlan& plan) {
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      for (const Axis axis : kAll) {
        CHECK(plan.group(rank, {axis})[static_cast<std::size_t>(plan.coordinate(rank, axis))] ==
              rank);
      }
      CHECK(plan.group(rank, kDataAxes)[static_cast<std::size_t>(plan.reader(rank))] == rank);
    }
  });
}

TEST_CASE("each data-parallel rank is counted once, and read once in each stage") {
  for_each_mesh([](const MeshPlan& plan) {
    std::map<int, int> counted, read;
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      counted[plan.reader(rank)] += plan.counts(rank) ? 1 : 0;
      read[plan.reader(rank)] += plan.reads(rank) ? 1 : 0;
    }
    CHECK(static_cast<int>(counted.size()) == plan.readers());
    for (const auto& [reader, times] : counted) CHECK(times == 1);
    for (const auto& [reader, times] : read) CHECK(times == plan.size(Axis::kPipe));
  });
}

TEST_CASE("sizes that do not divide the ranks are refused with what would fit") {
  CHECK(refusal(6, {.pipe = 2, .replica = {}, .shard = 1, .tensor = 2}) ==
        "/parallel: 6 ranks are not a multiple of 4 = pipeline 2 x tensor 2\n"
        "  start 4 or 8 ranks, or change one of these");
  CHECK(refusal(2, {.pipe = 1, .replica = {}, .shard = 4, .tensor = 1}) ==
        "/parallel: 2 ranks are not a multiple of 4 = shard 4\n"
        "  start 4 ranks, or make one of these smaller");
  CHECK(refusal(8, {.pipe = 1, .replica = 1, .shard = 4, .tensor = 1}) ==
        "/parallel: 8 ranks are not the 4 of replica 1 x shard 4\n"
        "  start 4 ranks, or leave out \"replica\", which then takes all ranks that are left");
  CHECK(refusal(8, {.pipe = 1, .replica = 2, .shard = 4, .tensor = 1}).empty());
  CHECK(refusal(1, {.pipe = 65536, .replica = {}, .shard = 65536, .tensor = 1}) ==
        "/parallel: 1 rank is not a multiple of 4294967296 = pipeline 65536 x shard 65536\n"
        "  start 4294967296 ranks, or make one of these smaller");
}

TEST_CASE("axes are named as in a recipe") {
  std::string names;
  for (const Axis axis : kAll) names += std::string(axis_name(axis)) + " ";
  CHECK(names == "pipeline replica shard context tensor ");
}

TEST_CASE("expert-parallel groups are neighbouring data-parallel ranks and form the model copies") {
  // rank = replica * 2 + shard
  const MeshPlan plan(8, {.pipe = 1, .replica = {}, .shard = 2, .tensor = 1, .expert = 4});
  CHECK(plan.experts() == 4);
  CHECK(plan.expert_group(5) == std::vector<int>{4, 5, 6, 7});
  CHECK(plan.same_experts(5) == std::vector<int>{1, 5});
  CHECK(plan.model_group(5) == std::vector<int>{4, 5, 6, 7});
  CHECK(plan.writes(3));
  CHECK_FALSE(plan.writes(4));
  // Others of the axes lie within: rank = data-parallel rank * 2 + tensor.
  const MeshPlan cut(8, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 2, .expert = 2});
  CHECK(cut.expert_group(5) == std::vector<int>{5, 7});
  CHECK(cut.same_experts(5) == std::vector<int>{1, 5});
  CHECK(cut.model_group(5) == std::vector<int>{4, 5, 6, 7});
  // rank = (pipe * 4 + data-parallel rank) * 2 + tensor: a copy has all stages.
  const MeshPlan staged(16, {.pipe = 2, .replica = {}, .tensor = 2, .expert = 2});
  CHECK(staged.expert_group(11) == std::vector<int>{9, 11});
  CHECK(staged.same_experts(11) == std::vector<int>{11, 15});
  CHECK(staged.model_group(11) == std::vector<int>{0, 1, 2, 3, 8, 9, 10, 11});
  CHECK(staged.writes(11));
  CHECK_FALSE(staged.writes(12));
  // rank = data-parallel rank * 2 + context: both places of a sequence have the same experts.
  const MeshPlan shared(8, {.replica = {}, .context = 2, .expert = 2});
  CHECK(shared.expert_group(5) == std::vector<int>{5, 7});
  CHECK(shared.same_experts(5) == std::vector<int>{0, 1, 4, 5});
  CHECK(shared.model_group(5) == std::vector<int>{5, 7});
  CHECK(shared.writes(2));
  CHECK_FALSE(shared.writes(1));
  // Without experts a copy is a replica.
  for_each_mesh([](const MeshPlan& mesh) {
    CHECK(mesh.experts() == 1);
    for (int rank = 0; rank < mesh.world_size(); ++rank) {
      CHECK(mesh.model_group(rank) == mesh.group(rank, kModelAxes));
    }
  });
}

TEST_CASE(
    "a model copy is a block of data-parallel ranks, and each place has a group across the "
    "copies") {
  struct CopyCase {
    int ranks;
    MeshSizes sizes;
    int rank, copies;
    std::vector<int> gradients, elements, samples, same_place;  // of `rank`
  };
  const std::vector<CopyCase> cases{
      {4, {.replica = {}}, 2, 4, {2}, {2}, {0, 1, 2, 3}, {0, 1, 2, 3}},
      {8, {.replica = {}, .shard = 2}, 5, 4, {4, 5}, {5}, {1, 3, 5, 7}, {1, 3, 5, 7}},
      {8,
       {.replica = {}, .shard = 2, .context = 2},
       5,
       2,
       {4, 5, 6, 7},
       {4, 5},
       {1, 5},
       {0, 1, 4, 5}},
      {8, {.replica = {}, .expert = 2}, 5, 4, {4, 5}, {4, 5}, {1, 3, 5, 7}, {1, 3, 5, 7}},
      {8, {.replica = {}, .shard = 2, .expert = 4}, 5, 2, {4, 5, 6, 7}, {5, 7}, {1, 5}, {1, 5}},
      {8,
       {.replica = {}, .context = 2, .expert = 2},
       5,
       2,
       {4, 5, 6, 7},
       {4, 5, 6, 7},
       {1, 5},
       {0, 1, 4, 5}},
      {8, {.pipe = 2, .replica = {}, .expert = 2}, 5, 2, {4, 5}, {4, 5}, {5, 7}, {5, 7}},
      {8, {.replica = {}, .tensor = 2, .expert = 2}, 5, 2, {5, 7}, {5, 7}, {1, 5}, {1, 5}},
  };
  for (const CopyCase& one : cases) {
    CAPTURE(&one - cases.data());
    const MeshPlan plan(one.ranks, one.sizes);
    CHECK(plan.model_copies() == one.copies);
    CHECK(plan.in_copy(one.rank, kGradientAxes) == one.gradients);
    CHECK(plan.in_copy(one.rank, kCopyAxes) == one.elements);
    CHECK(plan.same_place(one.rank, kDataAxes) == one.samples);
    CHECK(plan.same_place(one.rank, kGradientAxes) == one.same_place);
  }
}

TEST_CASE("ranks that cannot hold the experts together are refused with numbers that can") {
  CHECK(refusal(6, {.pipe = 1, .replica = {}, .shard = 1, .tensor = 1, .expert = 4}) ==
        "/parallel/expert: an expert-parallel size of 4 does not fit 6 data-parallel ranks\n  use "
        "one of: 1, 2, 3, 6");
  CHECK(refusal(8, {.pipe = 1, .replica = {}, .shard = 4, .tensor = 1, .expert = 2}) ==
        "/parallel/expert: an expert-parallel size of 2 does not fit 8 data-parallel ranks in "
        "replicas of \"shard\": 4\n  use one of: 1, 4, 8");
  CHECK(refusal(8, {.pipe = 1, .replica = {}, .shard = 4, .tensor = 1, .expert = 8}).empty());
}

TEST_CASE("a replica's ranks are those of a copy of the model, and each has its place") {
  const auto check = [](const MeshPlan& plan) {
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      std::vector<int> own;
      for (int other = 0; other < plan.world_size(); ++other) {
        if (plan.replica(other) == plan.replica(rank)) own.push_back(other);
      }
      CHECK(std::ssize(own) * plan.model_copies() == plan.world_size());
      CHECK(plan.replica_group(rank) == own);
      CHECK(own.at(static_cast<std::size_t>(plan.place(rank))) == rank);
      const std::vector<int> fellows = plan.same_place(rank, kDataAxes);
      CHECK(fellows.at(static_cast<std::size_t>(plan.replica(rank))) == rank);
      for (const int other : fellows) CHECK(plan.place(other) == plan.place(rank));
    }
  };
  for_each_mesh([&](const MeshPlan& plan) {
    check(plan);
    for (int rank = 0; rank < plan.world_size(); ++rank) {
      CHECK(plan.replica(rank) == plan.coordinate(rank, Axis::kReplica));
    }
  });
  for (const int tensor : {1, 2}) {
    check(MeshPlan(8 * tensor, {.replica = {}, .tensor = tensor, .expert = 2}));
    check(MeshPlan(8 * tensor, {.replica = {}, .shard = 2, .tensor = tensor, .expert = 4}));
    check(MeshPlan(16 * tensor, {.replica = {}, .context = 2, .tensor = tensor, .expert = 4}));
    check(MeshPlan(16 * tensor, {.pipe = 2, .replica = {}, .tensor = tensor, .expert = 4}));
  }
  // rank = pipe * 8 + data-parallel rank * 2 + tensor
  const MeshPlan staged(16, {.pipe = 2, .replica = {}, .tensor = 2, .expert = 2});
  CHECK(staged.replica(14) == 1);
  CHECK(staged.replica_group(14) == std::vector<int>{4, 5, 6, 7, 12, 13, 14, 15});
  CHECK(staged.place(14) == 6);
}

TEST_CASE("a rank sends to the next one along an axis, the last to the first") {
  const MeshPlan plan(8, {.pipe = 1, .replica = {}, .shard = 1, .context = 4, .tensor = 2});
  CHECK(plan.link(0, Axis::kContext) == std::vector<int>{0, 2});
  CHECK(plan.link(7, Axis::kContext) == std::vector<int>{7, 1});
  CHECK(plan.link(3, Axis::kTensor) == std::vector<int>{3, 2});
}

}  // namespace scaletrain::core
