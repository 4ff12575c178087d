#include "lib/checkpoint/share.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "lib/checkpoint/checkpoint.h"
#include "lib/checkpoint/tensor_files.h"
#include "lib/core/disk/read_faults.h"
#include "lib/core/error.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/checkpoint/team_support.h"
#include "tests/format/checkpoint_support.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

// Tensors of several types and layouts, one without elements; a mean and each rank's buffers.
FullContents shared_contents(std::int64_t step) {
  const auto value = static_cast<double>(step);
  const auto numbers = [&](at::IntArrayRef shape) {
    return at::arange(c10::multiply_integers(shape), at::kFloat).reshape(shape).add(value);
  };
  FullContents contents;
  contents.model = {
      {"conv.weight", numbers({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)},
      {"fc.weight", numbers({30, 7}).t()},
      {"half", numbers({13}).to(at::kHalf)},
      {"none", at::empty({0, 4})},
      {"norm.num_batches_tracked", at::full({}, step, at::kLong)},
  };
  contents.buffers = {{"norm.mean", numbers({3, 2})}};
  contents.ranks = {{"scale", numbers({3})}};
  FullMean& mean = contents.means["ema:0.5"];
  for (const auto& [name, tensor] : contents.model) mean.tensors[name] = tensor.clone();
  mean.buffers = {{"norm.mean", numbers({3, 2})}};
  contents.optimizer = {{"exp_avg/fc.weight", numbers({7, 30})},
                        {"step", at::full({}, value, at::kDouble)}};
  contents.state.step = step;
  contents.classes = {"zero"};
  contents.recipe = "{\"name\": \"test\"}\n";
  return contents;
}

// Writes `contents` as so many ranks; the path.
fs::path write_as(int ranks, const fs::path& run, const Contents& contents) {
  fs::path path;
  test::as_ranks(ranks, [&](Writers& writers) {
    const Contents share = share_of(contents, writers.rank(), ranks);
    if (writers.rank() != 0) return write_share(core::system_disk(), run, share, writers);
    path = write(core::system_disk(), run, share, &writers).path;
  });
  return path;
}

std::string diverged(int ranks, const fs::path& run, const Contents& contents) {
  return test::message_of<core::Error>([&] { write_as(ranks, run, contents); });
}

}  // namespace

namespace {

std::int64_t bytes_of_all(const Contents& share) {
  std::int64_t bytes = 0;
  for (const TensorFile& file : share.files) bytes += file.bytes_of_all;
  return bytes;
}

}  // namespace

TEST_CASE("all shares together are the contents, and about as large as each other") {
  FullContents contents = shared_contents(7);
  const std::int64_t expected = bytes_of_all(share_of(contents, 0, 1));
  std::int64_t most = 0, all = 0;
  for (int rank = 0; rank < 4; ++rank) {
    contents.stands = rank % 2 == 0;
    const Contents share = share_of(contents, rank, 4);
    CHECK(share.stands == contents.stands);
    CHECK(share.recipe.empty() == (rank != 0));
    const FullContents tensors(share);
    CHECK(tensors.buffers.empty() == (rank != 0));
    CHECK(tensors.ranks.empty() == (rank != 0));
    std::int64_t own = 0;
    for (const Tensors* of :
         {&tensors.model, &tensors.means.at("ema:0.5").tensors, &tensors.optimizer}) {
      for (const auto& [name, tensor] : *of) own += static_cast<std::int64_t>(tensor.nbytes());
    }
    most = std::max(most, own);
    all += own;
    CHECK(bytes_of_all(share) == expected);
  }
  CHECK(all == expected);
  CHECK(most <= all / 4 + 8);
}

TEST_CASE("what any number of ranks has written is loaded as what one has, bit for bit") {
  const FullContents contents = shared_contents(7);
  const test::TemporaryFolder alone;
  const fs::path whole = write(core::system_disk(), alone.path, contents).path;
  for (const int ranks : {2, 3, 8, 40}) {
    CAPTURE(ranks);
    const test::TemporaryFolder run;
    const fs::path path = write_as(ranks, run.path, contents);
    const format::Manifest manifest = format::verify_checkpoint(path);
    CHECK(manifest.format == 2);
    CHECK(format::tensor_files(manifest) == format::tensor_files(format::verify_checkpoint(whole)));
    CHECK(format::model_digest(path) == format::model_digest(whole));
    FullContents loaded = shared_contents(99);
    load(path, loaded);
    for (const auto& [name, tensor] : contents.model) {
      CAPTURE(name);
      CHECK((at::equal(loaded.model.at(name), tensor)));
    }
    for (const auto& [name, tensor] : contents.optimizer) {
      CHECK((at::equal(loaded.optimizer.at(name), tensor)));
    }
    CHECK(loaded.recipe == contents.recipe);
    Tensors mean = shared_contents(98).model;
    load_weights_of(path, mean, "ema:0.5");
    CHECK((at::equal(mean.at("fc.weight"), contents.model.at("fc.weight"))));
    Tensors buffers{{"norm.mean", at::zeros({3, 2})}};
    load_file(path / "buffers.safetensors", buffers);
    CHECK((at::equal(buffers.at("norm.mean"), contents.buffers.at("norm.mean"))));
  }
}

TEST_CASE("files of pieces are numbered, and those of ranks without a share do not exist") {
  const test::TemporaryFolder run;
  FullContents contents = shared_contents(1);
  contents.means.clear();
  contents.buffers.clear();
  contents.ranks.clear();
  contents.optimizer.clear();
  const fs::path path = write_as(3, run.path, contents);
  std::vector<std::string> names;
  for (const auto& [name, entry] : format::read_manifest(path).files) names.push_back(name);
  CHECK(names == std::vector<std::string>{"classes.json", "model-00001-of-00003.safetensors",
                                          "model-00002-of-00003.safetensors",
                                          "model-00003-of-00003.safetensors", "recipe.json",
                                          "state.json"});
  FullContents loaded = shared_contents(2);
  loaded.optimizer.clear();
  CHECK_NOTHROW(load(path, loaded));
}

TEST_CASE("a value that is not finite in any rank's share refuses the save, by its own number") {
  for (const std::int64_t element : {0, 100, 209}) {
    const test::TemporaryFolder run;
    FullContents contents = shared_contents(3);
    contents.model["fc.weight"] = contents.model.at("fc.weight").contiguous();
    contents.model.at("fc.weight").view({-1})[element] = std::nan("");
    const std::string found = diverged(4, run.path, contents);
    CAPTURE(found);
    CHECK(found.find(fmt::format("step 3: the tensor \"fc.weight\" is not finite at its element {}",
                                 element)) != std::string::npos);
    CHECK(format::list_checkpoints(run.path / "checkpoints").empty());
    CHECK(core::names_in(run.path / "checkpoints").empty());
  }
}

TEST_CASE("the first share has what is nobody's part: class names, and files without a tensor") {
  FullContents contents = shared_contents(1);
  contents.classes = {"cat", "dog"};
  contents.model.clear();
  const Contents first = share_of(contents, 0, 2), second = share_of(contents, 1, 2);
  CHECK(first.classes == contents.classes);
  CHECK(second.classes.empty());
  const test::TemporaryFolder folder;
  const auto tables_of = [&folder](const Contents& share) {
    return TensorFiles(share).write(core::system_disk(), folder.path).tensors;
  };
  CHECK(tables_of(first).contains("model.safetensors"));
  CHECK(tables_of(second)["model.safetensors"].empty());
}
