#include "lib/track/tensorboard.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <vector>

#include "lib/format/tar/tfrecord.h"
#include "tests/temporary_folder.h"
#include "tests/track/records.h"

namespace scaletrain::track {
namespace {

// The messages of a file, whose checksums for_each_record verifies.
std::vector<std::string> messages(const std::string& file) {
  std::vector<std::string> found;
  format::for_each_record(
      "events", static_cast<std::int64_t>(file.size()),
      [&](std::int64_t offset, std::span<std::byte> into) {
        std::memcpy(into.data(), file.data() + offset, into.size());
      },
      [&](std::string_view message) { found.emplace_back(message); });
  return found;
}

std::string event_file(const std::filesystem::path& run) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(run / "export" / "tensorboard")) {
    CHECK(found.empty());
    found = entry.path().filename().string();
  }
  return "export/tensorboard/" + found;
}

}  // namespace

TEST_CASE("a TFRecord has its length and two masked checksums") {
  const std::string record = tf_record("brain");
  CHECK(record.size() == 8 + 4 + 5 + 4);
  CHECK(messages(record) == std::vector<std::string>{"brain"});
}

TEST_CASE("events are encoded as event.proto says") {
  using std::string_literals::operator""s;
  const std::string time = "\x09\0\0\0\0\0\0\xf8\x3f"s;  // 1.5
  CHECK(version_event(1.5) == time + "\x10\0\x1a\x0d"s + "brain.Event:2");
  CHECK(restart_event(1.5, 300) == time + "\x10\xac\x02\x3a\x02\x08\x01"s);
  const std::array scalars{std::pair<std::string, double>{"lr", 0.5}};
  CHECK(scalars_event(1.5, 3, scalars) ==
        time + "\x10\x03\x2a\x0b\x0a\x09\x0a\x02lr\x15\0\0\0\x3f"s);
  const std::string text = text_event(1.5, "a", "b");
  CHECK(text == time + "\x10\0\x2a\x29\x0a\x27\x0a\x0e"s + "a/text_summary" +
                    "\x42\x0b\x08\x07\x12\x04\x12\x02\x08\x01\x42\x01"s + "b" +
                    "\x4a\x08\x0a\x06\x0a\x04"s + "text");
}

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
  const std::vector<std::string> events = messages(folder.read(event_file(folder.path)));
  REQUIRE(events.size() == 2 + 2 + 3);
  CHECK(events[0].ends_with("brain.Event:2"));
  CHECK(events[1].find("    {\n    }") != std::string::npos);
  CHECK(events[2] == restart_event(100.5, 1));
  CHECK(events[5] == restart_event(100.5, 2));
  const std::array loss{std::pair<std::string, double>{"Loss/train", 1}};
  CHECK(events[6] == scalars_event(100.5, 2, loss));
}

}  // namespace scaletrain::track
