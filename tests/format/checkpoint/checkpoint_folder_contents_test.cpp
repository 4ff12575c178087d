// Contents that have the right checksums and make no sense.
#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "lib/core/error.h"
#include "lib/format/checkpoint/checkpoint_folder.h"
#include "tests/format/checkpoint_support.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace scaletrain;          // NOLINT(google-build-using-namespace)
using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)
using test::Sensible;

namespace {

constexpr const char* kOther =
    "\n  use another checkpoint; `scaletrain checkpoint verify RUN` shows which are complete";
constexpr const char* kDiverged =
    "\n  training had diverged when it was saved: use an earlier checkpoint, and a lower learning "
    "rate";

struct Nonsense {
  std::string file, found;
  std::function<void(Sensible&)> change;
  const char* remedy = kOther;
};

const std::vector<Nonsense> kNonsense{
    {"state.json: /step", "is 21, and manifest.json says 20",
     [](Sensible& contents) { contents.state.step = 21; }},
    {"state.json: /best_metric", "is -1.5, and the best step is -1",
     [](Sensible& contents) {
       contents.state.best_metric = -1.5;
       contents.state.best_step = -1;
     }},
    {"state.json: /step", "is 20 in a training of 19 steps",
     [](Sensible& contents) { contents.recipe = "{\"steps\": 19}"; }},
    {"state.json: /epoch", "is 4 after 0 of its steps, in a training of 3 epochs",
     [](Sensible& contents) {
       contents.recipe = "{\"epochs\": 3}";
       contents.state.epoch = 4;
     }},
    {"classes.json", "is not a list of names",
     [](Sensible& contents) { contents.classes = "[1]"; }},
    {"recipe.json", "is not a JSON object", [](Sensible& contents) { contents.recipe = "[]"; },
     "\n  the file is damaged or was changed by hand: use another copy"},
    {"model.safetensors", "holds tensors of step \"10\", and state.json says 20",
     [](Sensible& contents) { contents.noted_step = "10"; }},
    {"optimizer.safetensors", "holds tensors of step \"10\", and state.json says 20",
     [](Sensible& contents) { contents.optimizer_noted_step = "10"; }},
    {"optimizer.safetensors",
     "the tensor \"exp_avg/head.weight\" belongs to no tensor of model.safetensors",
     [](Sensible& contents) { contents.averaged = "head.weight"; }},
    {"model.safetensors", "the tensor \"fc.weight\" is not finite at its element 1",
     [](Sensible& contents) { contents.weights[1] = std::numeric_limits<float>::quiet_NaN(); },
     kDiverged},
    {"model.safetensors", "the tensor \"fc.weight\" is not finite at its element 0",
     [](Sensible& contents) { contents.weights[0] = -std::numeric_limits<float>::infinity(); },
     kDiverged},
    {"model.safetensors", "the count \"norm.num_batches_tracked\" is -4",
     [](Sensible& contents) { contents.batches = -4; }},
    {"optimizer.safetensors",
     "the tensor \"step\" counts 30.5 updates, and state.json says 20 (20 steps, 0 left out)",
     [](Sensible& contents) { contents.updates = 30.5; }},
    {"optimizer.safetensors",
     "the tensor \"step\" counts 20 updates, and state.json says 17 (20 steps, 3 left out)",
     [](Sensible& contents) { contents.state.skipped_steps = 3; }},
    {"ema.safetensors", "has other tensors than model.safetensors",
     [](Sensible& contents) {
       contents.has_mean = true;
       contents.mean_name = "head.weight";
     }},
    {"ema.safetensors", "the tensor \"fc.bias\" is not finite at its element 0",
     [](Sensible& contents) {
       contents.has_mean = true;
       contents.mean_bias = std::numeric_limits<float>::infinity();
     },
     kDiverged},
    {"optimizer.safetensors", "the tensor \"exp_avg/fc.weight\" is not finite at its element 0",
     [](Sensible& contents) { contents.average[0] = std::numeric_limits<float>::quiet_NaN(); },
     kDiverged},
};

}  // namespace

TEST_CASE("a checkpoint that makes sense passes, also one of a writer that noted no step") {
  const test::TemporaryFolder run;
  CHECK(check_checkpoint(test::publish_sensible(run.path, 20)).step == 20);
  CHECK(read_state(run.path / "checkpoints" / "step-00000020").step == 20);
  Sensible skipped(20);
  skipped.state.skipped_steps = 3;
  skipped.updates = 17;
  skipped.average[0] = std::numeric_limits<float>::infinity();
  CHECK_NOTHROW(check_checkpoint(test::publish(run.path, skipped, 20)));
  skipped.has_mean = true;
  CHECK_NOTHROW(check_checkpoint(test::publish(run.path, skipped, 20)));
  fs::rename(run.path / "checkpoints" / "step-00000020", run.path / "kept");
  CHECK_NOTHROW(check_checkpoint(run.path / "kept"));
}

TEST_CASE("contents that verify and make no sense are refused, naming the file and the field") {
  for (const Nonsense& nonsense : kNonsense) {
    CAPTURE(nonsense.found);
    const test::TemporaryFolder run;
    Sensible contents(20);
    nonsense.change(contents);
    const fs::path checkpoint = test::publish(run.path, contents, 20);
    CHECK_NOTHROW(verify_checkpoint(checkpoint));
    CHECK(test::message_of<core::CheckpointError>([&] { check_checkpoint(checkpoint); }) ==
          (checkpoint / nonsense.file).string() + ": " + nonsense.found + nonsense.remedy);
  }
}

TEST_CASE("a file that was changed since it was listed is not parsed") {
  const test::TemporaryFolder run;
  const fs::path checkpoint = test::publish_sensible(run.path, 20);
  test::write_bytes(checkpoint / "state.json", test::state_text(20) + "\n");
  CHECK(test::message_of<core::CheckpointError>([&] {
          read_state(checkpoint);
        }).starts_with((checkpoint / "state.json").string() + ": has the XXH3-128 "));
}

TEST_CASE("a folder with the name of another step, and a file that is not listed, are refused") {
  const test::TemporaryFolder run;
  const fs::path other = run.path / "checkpoints" / "step-00000030";
  fs::rename(test::publish_sensible(run.path, 20), other);
  CHECK(test::message_of<core::CheckpointError>([&] { read_state(other); }) ==
        (other / "state.json").string() +
            ": /step: is 20, and the folder's name step-00000030 says 30" + kOther);
  core::Disk& disk = core::system_disk();
  const fs::path empty = publish_checkpoint(disk, run.path, {.program = "test", .step = 1}, 1,
                                            [](const fs::path&) { return FileEntries(); });
  CHECK(test::message_of<core::CheckpointError>([&] { check_checkpoint(empty); }) ==
        (empty / "manifest.json").string() + ": names no state.json" + kOther);
  const fs::path without_model = publish_checkpoint(
      disk, run.path, {.program = "test", .step = 2}, 1, [&](const fs::path& to) {
        FileEntries files = Sensible(2).write(disk, to);
        fs::remove(to / "model.safetensors");
        files.erase("model.safetensors");
        return files;
      });
  CHECK(test::message_of<core::CheckpointError>([&] { check_checkpoint(without_model); }) ==
        (without_model / "manifest.json").string() + ": names no model.safetensors" + kOther);
}
