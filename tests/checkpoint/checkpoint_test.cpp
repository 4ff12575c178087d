#include "lib/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "lib/format/safetensors/safetensors.h"
#include "tests/checkpoint/contents_support.h"
#include "tests/format/checkpoint_support.h"
#include "tests/format/crash_disk.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;              // NOLINT(google-build-using-namespace)
using namespace scaletrain::checkpoint;  // NOLINT(google-build-using-namespace)

namespace {

// Every dtype and layout that a model or an optimizer may hold.
FullContents make_contents(std::int64_t step) {
  const auto value = static_cast<double>(step);
  FullContents contents;
  contents.model = {
      {"conv.weight", at::arange(24, at::kFloat)
                          .reshape({2, 3, 2, 2})
                          .add(value)
                          .contiguous(at::MemoryFormat::ChannelsLast)},
      {"fc.weight", at::full({3, 2}, value, at::kFloat).t().requires_grad_()},
      {"half", at::full({5}, value, at::kHalf)},
      {"bf16", at::full({3}, value, at::kBFloat16)},
      {"mask", at::ones({3}, at::kBool)},
      {"none", at::empty({0, 4}, at::kFloat)},
      {"norm.num_batches_tracked", at::full({}, step, at::kLong)},
  };
  contents.optimizer = {{"exp_avg/fc.weight", at::full({2, 3}, value + 1, at::kFloat)},
                        {"step/fc.weight", at::full({}, value, at::kDouble)}};
  contents.state.step = step;
  contents.state.random = {{"seed", "00000000000004d2"}};
  contents.classes = {"zero", "\xc3\xa9"};
  contents.recipe = "{\"name\": \"test\"}\n";
  return contents;
}

using Steps = std::vector<std::int64_t>;

// `bests`: the best first.
fs::path save_step(const fs::path& run, std::int64_t step, const Steps& bests,
                   std::int64_t keep_last, core::Disk& disk = core::system_disk()) {
  FullContents contents = make_contents(step);
  if (!bests.empty()) {
    contents.state.best_step = bests.front();
    contents.state.best_metric = 0.5;
  }
  for (const std::int64_t best : bests) contents.state.best_steps.push_back({best, 0.5});
  return save(disk, run, contents, {.last = keep_last});
}

bool same(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, tensor] : a) {
    const at::Tensor& other = b.at(name);
    if (tensor.dtype() != other.dtype() || !at::equal(tensor, other)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("what is saved is loaded, bit for bit, into tensors of any layout") {
  const test::TemporaryFolder run;
  const FullContents saved = make_contents(7);
  const fs::path path = save(core::system_disk(), run.path, saved, {.last = 1});
  CHECK(path == run.path / "checkpoints" / "step-00000007");
  CHECK_NOTHROW(format::verify_checkpoint(path));
  FullContents loaded = make_contents(99);
  loaded.classes = {"other"};
  loaded.recipe = "{}";
  const at::Tensor weight = loaded.model.at("fc.weight");
  std::size_t looks = 0;  // while it is read
  load(path, loaded, [&] { ++looks; });
  CHECK(looks == 2);  // before 16 tensors of the model, and of the optimizer
  CHECK(same(loaded.model, saved.model));
  CHECK(same(loaded.optimizer, saved.optimizer));
  CHECK(weight.data_ptr() == loaded.model.at("fc.weight").data_ptr());  // filled, not replaced
  CHECK(weight.requires_grad());
  CHECK(loaded.state.step == 7);
  CHECK(loaded.state.random == saved.state.random);
  CHECK(loaded.classes == saved.classes);
  CHECK(loaded.recipe == saved.recipe);

  auto model = make_contents(98).model;
  load_weights_of(path, model);
  CHECK(same(model, saved.model));
}

TEST_CASE("each rank's buffers are a file of their own, where there are any") {
  const test::TemporaryFolder run;
  FullContents contents = make_contents(1);
  std::map<std::string, at::Tensor> loaded{{"mean", at::full({3, 2}, 5.0, at::kFloat)}};
  const fs::path without = save(core::system_disk(), run.path, contents, {.last = 2});
  CHECK(!fs::exists(without / "buffers.safetensors"));

  contents.state.step = 2;
  contents.buffers = {{"mean", at::arange(6, at::kFloat).view({3, 2})}};
  const fs::path with = save(core::system_disk(), run.path, contents, {.last = 2});
  CHECK(format::verify_checkpoint(with).files.contains("buffers.safetensors"));
  load_file(with / "buffers.safetensors", loaded);
  CHECK(same(loaded, contents.buffers));
  loaded["mean"] = at::zeros({4, 2});
  CHECK(test::message_of<core::CheckpointError>(
            [&] { load_file(with / "buffers.safetensors", loaded); }) ==
        (with / "buffers.safetensors").string() +
            ": does not fit: tensors 1 of another shape (mean: [3, 2] instead of [4, 2])\n  resume "
            "with the recipe that the checkpoint was made with (its recipe.json)");
}

TEST_CASE("a mean of the weights has files of its own, and is loaded where it is asked for") {
  const test::TemporaryFolder run;
  FullContents contents = make_contents(1);
  FullMean& mean = contents.means["ema"];
  mean.tensors = make_contents(5).model;
  mean.buffers = {{"mean", at::arange(6, at::kFloat).view({3, 2})}};
  contents.means["ema:0.5"].tensors = make_contents(6).model;
  contents.means["swa"].tensors = make_contents(7).model;
  const fs::path path = save(core::system_disk(), run.path, contents, {.last = 2});
  CHECK(format::verify_checkpoint(path).files.contains("ema_buffers.safetensors"));
  auto model = make_contents(9).model;
  load_weights_of(path, model);
  CHECK(same(model, contents.model));
  load_weights_of(path, model, "ema");
  CHECK(same(model, mean.tensors));
  for (const std::string other : {"ema:0.5", "swa"}) {
    load_weights_of(path, model, other);
    CHECK(same(model, contents.means.at(other).tensors));
  }
  std::map<std::string, at::Tensor> buffers{{"mean", at::zeros({3, 2})}};
  CHECK_FALSE(format::has_tensors(path / "buffers.safetensors"));  // the model has none
  load_file(path / "ema_buffers.safetensors", buffers);
  CHECK(same(buffers, mean.buffers));

  mean.tensors.at("fc.weight").data().fill_(HUGE_VAL);
  CHECK(test::message_of<core::DivergedError>([&] {
          save(core::system_disk(), run.path, contents, {.last = 2});
        }) != "nothing was thrown");
}

TEST_CASE("classes that are not what was saved are refused, and no tensor is changed") {
  const test::TemporaryFolder run;
  const fs::path path = save_step(run.path, 1, {}, 1);
  test::write_bytes(path / "classes.json", "[]");
  FullContents loaded = make_contents(2);
  CHECK(test::message_of<core::CheckpointError>([&] {
          load(path, loaded);
        }).starts_with((path / "classes.json").string() + ": has the XXH3-128 "));
  CHECK(same(loaded.model, make_contents(2).model));
}

TEST_CASE("tensors that are not finite are not saved, but for infinities of the optimizer") {
  const double nan = std::nan("");
  struct Row {
    std::string tensors;
    double value;
    const char* expected;
  };
  const std::string remedy =
      "\n  nothing is saved, the checkpoints from before are kept: lower the learning rate, "
      "lengthen the warmup or clip the gradients";
  for (const Row& row :
       {Row{"model", nan, "step 2: the tensor \"z\" is not finite at its element 1"},
        Row{"model", HUGE_VAL, "step 2: the tensor \"z\" is not finite at its element 1"},
        Row{"optimizer", nan, "step 2: the tensor \"z\" is not finite at its element 1"},
        Row{"optimizer", HUGE_VAL, nullptr}}) {
    CAPTURE(row.tensors);
    CAPTURE(row.value);
    const test::TemporaryFolder run;
    save_step(run.path, 1, {}, 1);
    FullContents contents = make_contents(2);
    (row.tensors == "model" ? contents.model : contents.optimizer)["z"] =
        at::tensor({1.0, row.value});
    CHECK(test::message_of<core::DivergedError>([&] {
            save(core::system_disk(), run.path, contents, {.last = 1});
          }) == (row.expected == nullptr ? "nothing was thrown" : row.expected + remedy));
    const Steps left{row.expected == nullptr ? 2 : 1};
    CHECK(format::list_checkpoints(run.path / "checkpoints") == left);
  }
}

TEST_CASE("saving does not change the tensors and the file says what it is") {
  const test::TemporaryFolder run;
  const FullContents contents = make_contents(3);
  const fs::path path = save(core::system_disk(), run.path, contents, {.last = 1});
  CHECK(same(contents.model, make_contents(3).model));
  const format::SafetensorsFile file(path / "model.safetensors");
  CHECK(file.metadata() == std::map<std::string, std::string>{{"format", "pt"}, {"step", "3"}});
  std::vector<std::string> dtypes;
  for (const auto& tensor : file.tensors()) dtypes.push_back(tensor.name + " " + tensor.dtype);
  CHECK(dtypes == std::vector<std::string>{"bf16 BF16", "conv.weight F32", "fc.weight F32",
                                           "half F16", "mask BOOL", "none F32",
                                           "norm.num_batches_tracked I64"});
}

TEST_CASE(
    "a load names the first three tensors of each kind that do not fit, and changes nothing") {
  const test::TemporaryFolder run;
  const fs::path path = save_step(run.path, 1, {1}, 1);
  FullContents other = make_contents(2);
  for (const char* name : {"bf16", "fc.weight", "half", "mask"}) other.model.erase(name);
  for (const char* name : {"d", "c", "b", "a"}) other.model[name] = at::zeros({1});
  other.model["conv.weight"] = at::zeros({2, 3});
  other.model["norm.num_batches_tracked"] = at::zeros({}, at::kInt);
  CHECK(test::message_of<core::CheckpointError>([&] { load(path, other); }) ==
        (path / "model.safetensors").string() +
            ": does not fit: tensors 4 missing (a, b, c, ...); 4 left over (bf16, fc.weight, half, "
            "...); 1 of another shape (conv.weight: [2, 3, 2, 2] instead of [2, 3]); 1 of another "
            "dtype (norm.num_batches_tracked: I64 instead of I32)\n  resume with the recipe that "
            "the checkpoint was made with (its recipe.json)");

  FullContents one_more = make_contents(2);
  one_more.optimizer["exp_avg/other"] = at::zeros({1});
  CHECK(test::message_of<core::CheckpointError>([&] { load(path, one_more); }) ==
        (path / "optimizer.safetensors").string() +
            ": does not fit: tensors 1 missing (exp_avg/other)\n  resume with the recipe that the "
            "checkpoint was made with (its recipe.json)");
  CHECK(same(one_more.model, make_contents(2).model));
}

TEST_CASE("the last and the best checkpoints stay, with links to the newest and the best") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  save_step(run.path, 10, {}, 2);
  CHECK(!fs::exists(fs::symlink_status(checkpoints / "best")));
  save_step(run.path, 20, {20}, 2);
  save_step(run.path, 30, {30}, 2);
  CHECK(fs::read_symlink(checkpoints / "best") == "step-00000030");
  for (const std::int64_t step : {40, 50, 60}) save_step(run.path, step, {30}, 2);
  CHECK(format::list_checkpoints(checkpoints) == Steps{30, 50, 60});
  CHECK(fs::read_symlink(checkpoints / "latest") == "step-00000060");
  CHECK(fs::read_symlink(checkpoints / "best") == "step-00000030");
  save_step(run.path, 70, {70, 30}, 1);
  save_step(run.path, 80, {70, 30}, 1);
  CHECK(format::list_checkpoints(checkpoints) == Steps{30, 70, 80});
  CHECK(fs::read_symlink(checkpoints / "best") == "step-00000070");
  save_step(run.path, 90, {}, 1);
  CHECK(format::list_checkpoints(checkpoints) == Steps{90});
  CHECK(!fs::exists(fs::symlink_status(checkpoints / "best")));
}

TEST_CASE("training that went back leaves the later checkpoints, and their best, behind") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  for (const std::int64_t step : {10, 20, 30}) save_step(run.path, step, {step}, 5);
  save_step(run.path, 15, {10}, 5);
  CHECK(format::list_checkpoints(checkpoints) == Steps{10, 15});
  CHECK(fs::read_symlink(checkpoints / "latest") == "step-00000015");
  CHECK(fs::read_symlink(checkpoints / "best") == "step-00000010");
  save_step(run.path, 5, {}, 5);
  CHECK(format::list_checkpoints(checkpoints) == Steps{5});
  CHECK(!fs::exists(fs::symlink_status(checkpoints / "best")));
}

TEST_CASE("a best checkpoint whose state cannot be read stays, and so does its link") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  save_step(run.path, 10, {10}, 1);
  const fs::path state = checkpoints / "step-00000010" / "state.json";
  fs::rename(state, run.path / "state");
  fs::create_symlink("state.json", state);  // as of a disk that fails: it cannot be opened
  CHECK(test::warnings_of([&] { save_step(run.path, 20, {10}, 1); }) ==
        fmt::format("warning: {}: cannot be read: Too many levels of symbolic links (ELOOP); the "
                    "checkpoint of step 10 is kept, because its metrics are unknown; ",
                    state.string()));
  CHECK(format::list_checkpoints(checkpoints) == Steps{10, 20});
  CHECK(fs::read_symlink(checkpoints / "best") == "step-00000010");
  fs::rename(run.path / "state", state);  // the disk works again
  save_step(run.path, 30, {10}, 1);
  CHECK(format::list_checkpoints(checkpoints) == Steps{10, 30});
  CHECK(fs::read_symlink(checkpoints / "best") == "step-00000010");
}

// A disk that fails once the checkpoint that was replaced is gone: the folder cannot be listed.
class FailsAfterReplacing : public test::CrashDisk {
 public:
  using CrashDisk::CrashDisk;

  void remove_all(const fs::path& path) override {
    const bool is_replaced =
        fs::exists(path) && path.filename().string().find(".removed") != std::string::npos;
    CrashDisk::remove_all(path);
    if (!is_replaced) return;
    fs::rename(path.parent_path(), path.parent_path().string() + ".real");
    fs::create_symlink("checkpoints", path.parent_path());  // to itself
  }
};

TEST_CASE("where the folder cannot be listed, the new checkpoint is saved and nothing is removed") {
  const test::TemporaryFolder run;
  const fs::path checkpoints = run.path / "checkpoints";
  FailsAfterReplacing disk(run.path);
  for (const std::int64_t step : {1, 2}) save_step(run.path, step, {}, 2, disk);
  fs::path path;
  CHECK(test::warnings_of([&] { path = save_step(run.path, 2, {}, 1, disk); }) ==
        fmt::format("warning: {}: cannot be read: Too many levels of symbolic links (ELOOP); no "
                    "earlier checkpoint is removed; ",
                    checkpoints.string()));
  CHECK(path == checkpoints / "step-00000002");
  CHECK(format::list_checkpoints(run.path / "checkpoints.real") == Steps{1, 2});
}

TEST_CASE("after a cut at any operation of a save, a whole checkpoint loads") {
  for (const auto lost : {test::CrashDisk::Lost::kNothing, test::CrashDisk::Lost::kContents,
                          test::CrashDisk::Lost::kEverything}) {
    bool done = false;
    int operations = 0;
    for (; !done; ++operations) {
      CAPTURE(operations);
      REQUIRE(operations < 500);
      const test::TemporaryFolder folder;
      const fs::path run = folder.path / "run";
      test::CrashDisk disk(folder.path);
      disk.make_folders(run);
      disk.sync_folder(folder.path);
      save_step(run, 1, {1}, 1, disk);
      disk.cut_after(operations);
      try {
        save_step(run, 2, {2}, 1, disk);
        done = true;
      } catch (const test::PowerCut&) {
        done = false;
      }
      disk.restart(lost);
      const auto found = format::find_checkpoint(run, [](const std::string& damage) {
        FAIL_CHECK("a damaged checkpoint has its final name: " << damage);
      });
      REQUIRE(found.has_value());
      FullContents loaded = make_contents(99);
      load(*found, loaded);
      const std::int64_t step = loaded.state.step;
      CHECK((step == 2 || (step == 1 && !done)));
      CHECK(same(loaded.model, make_contents(step).model));
      CHECK(same(loaded.optimizer, make_contents(step).optimizer));
    }
    CHECK(operations > 30);
  }
}

TEST_CASE("what a checkpoint needs is 1.2 times its tensors, those of means among them") {
  const test::TemporaryFolder run;
  test::CrashDisk disk(run.path);
  disk.free = 10;
  FullContents contents;
  contents.model = {{"w", at::ones({100})}};
  contents.optimizer = {{"exp_avg/w", at::ones({10})}};
  contents.means["ema"] = {.tensors = {{"w", at::ones({5})}}, .buffers = {{"b", at::ones({5})}}};
  CHECK(test::message_of<core::StorageError>([&] {
          save(disk, run.path, contents, {});
        }).find("needs 576 bytes, 10 are free") != std::string::npos);  // 1.2 * 4 * 120
}

TEST_CASE("a full disk loses no checkpoint") {
  const test::TemporaryFolder run;
  test::CrashDisk disk(run.path);
  const fs::path first = save_step(run.path, 1, {1}, 1, disk);
  disk.before = [](const std::string& operation, const fs::path& path) {
    if (operation == "write" && path.filename() == "optimizer.safetensors") {
      throw core::StorageError(path.string(), "cannot write: No space left on device (ENOSPC)");
    }
  };
  CHECK_THROWS_AS(save_step(run.path, 2, {2}, 1, disk), core::StorageError);
  CHECK(format::list_checkpoints(run.path / "checkpoints") == Steps{1});
  CHECK_NOTHROW(format::verify_checkpoint(first));
  CHECK(fs::read_symlink(run.path / "checkpoints" / "latest") == "step-00000001");
  disk.before = nullptr;
  CHECK_NOTHROW(save_step(run.path, 2, {2}, 1, disk));
}
