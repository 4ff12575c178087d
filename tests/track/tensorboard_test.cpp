#include "lib/track/tensorboard.h"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/core/error.h"
#include "lib/track/tensorboard_events.h"
#include "tests/temporary_folder.h"
#include "tests/track/event_messages.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

std::string event_file(const std::filesystem::path& run) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(run / "export" / "tensorboard")) {
    CHECK(found.empty());
    found = entry.path().filename().string();
  }
  return "export/tensorboard/" + found;
}

}  // namespace

TEST_CASE("tags are those that users of torch.utils.tensorboard know") {
  const Record train = train_record(1, 1), eval = eval_record(1, 1);
  CHECK(scalar_tag(train, "loss") == "Loss/train");
  CHECK(scalar_tag(train, "lr") == "lr");
  CHECK(scalar_tag(train, "epoch") == "train/epoch");
  CHECK(scalar_tag(train, "time").empty());
  CHECK(scalar_tag(eval, "loss") == "Loss/val");
  CHECK(scalar_tag(eval, "top1") == "Accuracy/val");
  CHECK(scalar_tag(eval, "top5") == "top5/val");
}

TEST_CASE("an event file has its version, the recipe, and a restart where an attempt begins") {
  const test::TemporaryFolder folder;
  folder.write("recipe.json", "{\n}");
  folder.write("export/tensorboard/events.out.tfevents.1.host.1.0", "of an earlier exporter");
  const auto exporter = make_tensorboard({.run = folder.path, .name = "run"});
  exporter->write(std::array{train_record(1, 2.5), train_record(2, 2), train_record(2, 1, 1)});
  const std::vector<std::string> events = event_messages(folder.read(event_file(folder.path)));
  REQUIRE(events.size() == 2 + 2 + 3);
  CHECK(events[0].ends_with("brain.Event:2"));
  CHECK(events[1].find("    {\n    }") != std::string::npos);
  CHECK(events[2] == restart_event(100.5, 1));
  CHECK(events[5] == restart_event(100.5, 2));
  const std::array loss{std::pair<std::string, double>{"Loss/train", 1}};
  CHECK(events[6] == scalars_event(100.5, 2, loss));
}

TEST_CASE("hyperparameters are the keys that decide what is learned") {
  const auto recipe = nlohmann::ordered_json::parse(R"({
      "name": "digits", "output": "/runs/digits", "model": {"name": "mlp", "hidden": 32},
      "data": {"image_size": 16, "train": {"shards": "s3://user:word@bucket/x"}},
      "clip": null, "ema": {"warmup": true}, "optimizer": {"lr": 0.5, "betas": [0.9, 0.95]}})");
  CHECK(hparams_of(recipe) ==
        nlohmann::ordered_json::parse(R"({"model.name": "mlp", "model.hidden": 32,
            "data.image_size": 16, "ema.warmup": true, "optimizer.lr": 0.5,
            "optimizer.betas.0": 0.9, "optimizer.betas.1": 0.95})"));
}

TEST_CASE("pictures, their captions and histograms are events of their step and attempt") {
  const test::TemporaryFolder folder;
  folder.write("media/step-00000001-train-batch.png", "a picture");
  const auto exporter = make_tensorboard({.run = folder.path, .name = "run"});
  Picture picture{.name = "train/batch",
                  .file = "step-00000001-train-batch.png",
                  .attempt = 0,
                  .step = 1,
                  .time = 100.5,
                  .columns = 2,
                  .captions = {"cat", "dog|wolf", "fox"}};
  const Histograms histograms{
      .attempt = 1, .step = 2, .time = 101.5, .all = {{.name = "weights/w", .counts = {1}}}};
  exporter->write_pictures(std::array{picture});
  exporter->write_histograms(std::array{histograms});
  exporter->write_pictures(std::array{picture});  // its step is not repeated
  picture.step = 2;
  exporter->write_pictures(std::array{picture});  // the later attempt began with this step
  exporter->finish();
  const std::vector<std::string> events = event_messages(folder.read(event_file(folder.path)));
  REQUIRE(events.size() == 9);
  picture.step = 1;
  CHECK(events[1] == restart_event(100.5, 1));
  CHECK(events[2] == image_event(picture, "a picture"));
  CHECK(events[3] ==
        text_event(100.5, "train/batch", "| cat | dog/wolf |\n|---|---|\n| fox |\n", 1));
  CHECK(events[4] == restart_event(101.5, 2));
  CHECK(events[5] == histograms_event(histograms));
  CHECK(events[6] == events[2]);
  CHECK(events[8].find("_hparams_/session_end_info") != std::string::npos);
}

TEST_CASE("a picture that was removed is left out, and one that cannot be read is an error") {
  const test::TemporaryFolder folder;
  folder.write("media/broken.png/file", "a folder in the place of the picture");
  const auto exporter = make_tensorboard({.run = folder.path, .name = "run"});
  const auto write = [&exporter](const std::string& file) {
    exporter->write_pictures(
        std::array{Picture{.name = "val/worst", .file = file, .captions = {}}});
  };
  write("removed.png");
  CHECK(event_messages(folder.read(event_file(folder.path))).size() == 1);  // the version
  CHECK_THROWS_AS(write("broken.png"), core::Error);
}

}  // namespace scaletrain::track
