#include "lib/checkpoint/shard_reader.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/host_copies.h"
#include "lib/checkpoint/share.h"
#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/checkpoint/checkpoint_folder_names.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/checkpoint/team_support.h"
#include "tests/format/checkpoint_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

const std::vector<std::int64_t> kShardShape{5, 7};

at::Tensor numbers_of(const char* name) {
  return at::arange(35, at::kFloat).view(kShardShape).add(1000.0 * name[0]);
}

// State of one of several ranks that hold a model together.
struct RankState {
  units::Shards model, mean, optimizer;
};

// Rank `rank` of `ranks` has elements 35 * rank / ranks and up of "a.weight" and of its state. The
// last rank has all of "b.weight", whose state the first has in any shape. All have the buffer and
// the step; the first owns them.
RankState state_of(int rank, int ranks) {
  const std::int64_t first = 35 * rank / ranks, last = 35 * (rank + 1) / ranks;
  const auto range = [&](const char* name) -> units::Shard {
    return {.tensor = numbers_of(name).view({-1}).narrow(0, first, last - first).clone(),
            .shape = kShardShape,
            .slices = {format::range_piece(kShardShape, first, last)}};
  };
  const bool is_first = rank == 0, is_last = rank + 1 == ranks;
  RankState state;
  state.model = {{"a.weight", range("a")},
                 {"b.weight", {.shape = kShardShape}},
                 {"norm.mean", units::full_shard(at::full({3}, 2.5), is_first)}};
  state.mean = {{"a.weight", range("m")},
                {"b.weight", {.shape = kShardShape}},
                {"norm.mean", units::full_shard(at::full({3}, 3.5), is_first)}};
  state.optimizer = {{"exp_avg/a.weight", range("o")},
                     {"step", units::full_shard(at::full({}, 7, at::kDouble), is_first)}};
  if (is_last) {
    state.model["b.weight"] = units::full_shard(numbers_of("b"));
    state.mean["b.weight"] = units::full_shard(numbers_of("n"));
  }
  for (const char* const kind : {"exp_avg", "gram", "basis"}) {
    state.optimizer[fmt::format("{}/b.weight", kind)] = {};  // elsewhere
  }
  if (is_first) {
    state.optimizer["exp_avg/b.weight"] = units::full_shard(numbers_of("p"));
    state.optimizer["gram/b.weight"] = units::full_shard(at::full({5, 5}, 0.5));
    state.optimizer["basis/b.weight"] = units::full_shard(at::zeros({0, 0}));
  }
  return state;
}

Contents sharded_contents(int rank, int ranks, std::int64_t step, bool writes = true) {
  RankState state = state_of(rank, ranks);
  Contents contents;
  const auto add = [&](const char* name, TensorFile::Kind kind, units::Shards shards) {
    TensorFile& file = contents.file(name, kind);
    file.part = part_name(name, rank, ranks);
    file.bytes_of_all = 1000;
    if (writes) file.shards = std::move(shards);
  };
  add("model.safetensors", TensorFile::Kind::kWeights, state.model);
  add("ema.safetensors", TensorFile::Kind::kWeights, state.mean);
  add("optimizer.safetensors", TensorFile::Kind::kOptimizer, state.optimizer);
  contents.classes = {"zero"};
  contents.recipe = "{\"name\": \"test\"}\n";
  contents.state.step = step;
  return contents;
}

// Writes as `ranks` ranks that hold a model together, beside as many that hold it once more.
fs::path write_sharded(int ranks, const fs::path& run) {
  fs::path path;
  test::as_ranks(2 * ranks, [&](Writers& writers) {
    const int rank = writers.rank();
    const Contents share =
        share_of(sharded_contents(rank % ranks, ranks, 7, rank < ranks), rank, 2 * ranks);
    if (rank != 0) return write_share(core::system_disk(), run, share, writers);
    path = write(core::system_disk(), run, share, &writers).path;
  });
  return path;
}

void forget(const units::Shards& shards) {
  for (const auto& [name, tensor] : local_tensors(shards)) tensor.zero_();
}

void check_equal(const units::Shards& found, const units::Shards& expected) {
  const Tensors tensors = local_tensors(found);
  REQUIRE(tensors.size() == local_tensors(expected).size());
  for (const auto& [name, tensor] : tensors) {
    CAPTURE(name);
    CHECK(at::equal(tensor, expected.at(name).tensor));
  }
}

void check_reads(const fs::path& path, int rank, int ranks) {
  CAPTURE(rank);
  const RankState found = state_of(rank, ranks), expected = state_of(rank, ranks);
  using File = std::pair<const char*, std::pair<const units::Shards*, const units::Shards*>>;
  for (const auto& [file, shards] :
       {File{"model.safetensors", {&found.model, &expected.model}},
        File{"optimizer.safetensors", {&found.optimizer, &expected.optimizer}}}) {
    forget(*shards.first);
    ShardReader(path / file, *shards.first).read(*shards.first);
    check_equal(*shards.first, *shards.second);
  }
}

std::string refusal_of(const fs::path& file, const units::Shards& wanted,
                       ReadOptions options = {}) {
  return test::message_of<core::CheckpointError>([&] { ShardReader(file, wanted, options); });
}

}  // namespace

TEST_CASE("shards of several ranks are written once and read by any number of ranks") {
  for (const int ranks : {1, 2, 4}) {
    const test::TemporaryFolder run;
    const fs::path path = write_sharded(ranks, run.path);
    CAPTURE(ranks);
    const std::string last = fmt::format("model-{:05}-of-{:05}.safetensors", ranks, ranks);
    CHECK(fs::exists(path / last));
    CHECK_FALSE(fs::exists(path / "model.safetensors"));
    format::check_checkpoint(path);
    for (const int readers : {1, 3, 4}) {
      for (int rank = 0; rank < readers; ++rank) check_reads(path, rank, readers);
      const units::Shards mean = state_of(0, readers).mean;
      forget(mean);
      ShardReader(path / "ema.safetensors", mean, {.casts_floats = true}).read(mean);
      check_equal(mean, state_of(0, readers).mean);
    }
    // A rank that has the full model reads the same files.
    FullContents all;
    all.model = {{"a.weight", at::zeros(kShardShape)},
                 {"b.weight", at::zeros(kShardShape)},
                 {"norm.mean", at::zeros({3})}};
    all.optimizer = {{"exp_avg/a.weight", at::zeros(kShardShape)},
                     {"exp_avg/b.weight", at::zeros(kShardShape)},
                     {"gram/b.weight", at::zeros({5, 5})},
                     {"basis/b.weight", at::zeros({0, 0})},
                     {"step", at::zeros({}, at::kDouble)}};
    load(path, all);
    CHECK(at::equal(all.model.at("a.weight"), numbers_of("a")));
    CHECK(at::equal(all.optimizer.at("exp_avg/b.weight"), numbers_of("p")));
    CHECK(at::equal(all.optimizer.at("gram/b.weight"), at::full({5, 5}, 0.5)));
    CHECK(all.classes == std::vector<std::string>{"zero"});
  }
}

TEST_CASE("a rank reads its shards from a checkpoint that one rank wrote in full") {
  const test::TemporaryFolder run;
  FullContents all;
  all.model = {{"a.weight", numbers_of("a")},
               {"b.weight", numbers_of("b")},
               {"norm.mean", at::full({3}, 2.5)}};
  all.optimizer = {{"exp_avg/a.weight", numbers_of("o")},
                   {"exp_avg/b.weight", numbers_of("p")},
                   {"gram/b.weight", at::full({5, 5}, 0.5)},
                   {"basis/b.weight", at::zeros({0, 0})},
                   {"step", at::full({}, 7, at::kDouble)}};
  all.state.step = 7;
  all.recipe = "{}";
  const fs::path path = save(core::system_disk(), run.path, all, {.last = 1});
  for (int rank = 0; rank < 3; ++rank) check_reads(path, rank, 3);
}

TEST_CASE("tensors that do not fit are named") {
  const test::TemporaryFolder run;
  const fs::path path = write_sharded(2, run.path);
  units::Shards model = state_of(0, 2).model;
  model["a.weight"].shape = {7, 5};
  model.erase("norm.mean");
  CHECK(refusal_of(path / "model.safetensors", model)
            .find("does not fit: tensors 1 left over (norm.mean); 1 of another shape (a.weight: "
                  "[5, 7] instead of [7, 5])") != std::string::npos);
  units::Shards optimizer = state_of(0, 2).optimizer;
  optimizer["exp_avg_sq/a.weight"] = optimizer.at("exp_avg/a.weight");
  optimizer.erase("exp_avg/a.weight");
  CHECK(refusal_of(path / "optimizer.safetensors", optimizer)
            .find("1 missing (exp_avg_sq/a.weight); 1 left over (exp_avg/a.weight)") !=
        std::string::npos);
  // A parameter of other ranks may have any state.
  optimizer = state_of(1, 2).optimizer;
  for (const char* const kind : {"exp_avg", "gram", "basis"}) {
    optimizer.erase(fmt::format("{}/b.weight", kind));
  }
  CHECK(refusal_of(path / "optimizer.safetensors", optimizer).find("left over") !=
        std::string::npos);
  optimizer["b.weight"] = {};
  CHECK(refusal_of(path / "optimizer.safetensors", optimizer) == "nothing was thrown");
}

namespace {

// Rows of rank 2 * replica + rank, one of two in one of three replicas: elements of the optimizer
// state of "a.weight", and a number that both have and the first owns.
units::Shards replica_rows(int replica, int rank) {
  const std::int64_t first = rank == 0 ? 0 : 20, last = rank == 0 ? 20 : 35;
  const units::Shard range{
      .tensor = numbers_of("a").view({-1}).narrow(0, first, last - first).add(100 * replica),
      .shape = kShardShape,
      .slices = {format::range_piece(kShardShape, first, last)}};
  const units::Shard step =
      units::full_shard(at::full({}, 10 * replica, at::kDouble), /*owned=*/rank == 0);
  return {{"optimizer/exp_avg/a.weight", in_row(range, replica, 3)},
          {"optimizer/step", in_row(step, replica, 3)}};
}

}  // namespace

TEST_CASE("a rank writes the rows of other replicas as these write them") {
  const auto written_by = [](int ranks, const fs::path& run) {
    fs::path path;
    test::as_ranks(ranks, [&](Writers& writers) {
      const int rank = writers.rank();
      Contents contents = sharded_contents(rank % 2, 2, 7, rank < 2);
      for (int replica = rank / 2; replica < 3; replica += ranks / 2) {
        contents.files.push_back({.name = kRanksFile,
                                  .kind = TensorFile::Kind::kPerRank,
                                  .shards = replica_rows(replica, rank % 2),
                                  .part = part_name(kRanksFile, 2 * replica + rank % 2, 6)});
      }
      HostCopies copies;
      copies.begin(share_of(contents, rank, ranks));
      const Contents& share = copies.contents();
      if (rank != 0) return write_share(core::system_disk(), run, share, writers);
      path = write(core::system_disk(), run, share, &writers).path;
    });
    format::check_checkpoint(path);
    return path;
  };
  const test::TemporaryFolder each, two;
  const fs::path own = written_by(6, each.path), all = written_by(2, two.path);
  int files = 0;
  for (const auto& file : fs::directory_iterator(own)) {
    if (!file.path().filename().string().starts_with("ranks-")) continue;
    ++files;
    CHECK(test::read_bytes(file.path()) == test::read_bytes(all / file.path().filename()));
  }
  CHECK(files == 6);
  for (const fs::path& path : {own, all}) {
    for (const int replica : {0, 1, 2}) {
      const units::Shards rows = replica_rows(replica, 1);
      forget(rows);
      ShardReader(path / kRanksFile, rows).read(rows);
      check_equal(rows, replica_rows(replica, 1));
    }
  }
}

TEST_CASE("a shard of several slices is refused: a file has one slice of a tensor") {
  const test::TemporaryFolder run;
  Contents contents = sharded_contents(0, 2, 4);
  contents.file("model.safetensors").shards.at("a.weight").slices = {
      format::range_piece(kShardShape, 0, 10), format::range_piece(kShardShape, 20, 27)};
  const std::string said = test::message_of<core::InternalError>(
      [&] { write(core::system_disk(), run.path, contents); });
  CHECK(said.find("a.weight has 17 elements in 2 slices, which have 17") != std::string::npos);
}

TEST_CASE("a share has the shards that its rank owns; rank 0 has the unsharded files too") {
  Contents contents = sharded_contents(1, 2, 4);
  contents.file("buffers.safetensors", TensorFile::Kind::kPerRank).shards =
      units::full_shards({{"norm.mean", at::ones({2, 3})}});
  const Contents first = share_of(contents, 0, 2), second = share_of(contents, 1, 2);
  CHECK(first.files.size() == 4);
  REQUIRE(second.files.size() == 3);
  CHECK(second.files[0].shards.size() == 2);  // not the buffer, which rank 0 owns
  CHECK(second.files[2].shards.size() == 1);  // neither the step nor what is elsewhere
  CHECK(second.files[0].bytes_of_all == 1000);
  CHECK_FALSE(second.stands);
  contents.stands = true;
  CHECK(share_of(contents, 1, 2).stands);
}

TEST_CASE("several slices are read into a tensor of another dtype and memory layout") {
  const test::TemporaryFolder run;
  const fs::path path = write_sharded(2, run.path);
  const at::Tensor expected = at::cat(
      {numbers_of("a").view({-1}).narrow(0, 3, 2), numbers_of("a").view({-1}).narrow(0, 16, 4)});
  for (const at::Tensor& target :
       {at::zeros({6}), at::zeros({6}, at::kDouble), at::zeros({6, 2}).select(1, 0)}) {
    CAPTURE(target.dtype().name());
    CAPTURE(target.is_contiguous());
    units::Shards shards = state_of(0, 2).model;
    shards["a.weight"] = {.tensor = target,
                          .shape = kShardShape,
                          .slices = {format::range_piece(kShardShape, 3, 5),
                                     format::range_piece(kShardShape, 16, 20)}};
    int calls = 0;
    ShardReader(path / "model.safetensors", shards, {.casts_floats = true}).read(shards, [&] {
      ++calls;
    });
    CHECK(at::equal(target.to(at::kFloat), expected));
    CHECK(calls == 1);
  }
}

TEST_CASE("other tensors of a file are refused unless they are allowed") {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path / "ranks.safetensors";
  HostTensors(units::full_shards({{"optimizer/step", at::ones({3})}, {"other", at::ones({2})}}))
      .write(core::system_disk(), file);
  const units::Shards row{{"optimizer/step", in_row(units::full_shard(at::zeros({})), 1, 3)}};
  CHECK(refusal_of(file, row).find("1 left over (other)") != std::string::npos);
  ShardReader(file, row, {.allows_others = true}).read(row);
  CHECK(row.at("optimizer/step").tensor.item<float>() == 1);
  const units::Shards wide{
      {"optimizer/step", in_row(units::full_shard(at::zeros({}, at::kDouble)), 1, 3)}};
  CHECK(refusal_of(file, wide, {.allows_others = true})
            .find("1 of another dtype (optimizer/step: F32 instead of F64)") != std::string::npos);
}
