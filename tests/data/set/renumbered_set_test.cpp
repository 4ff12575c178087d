#include "lib/data/set/renumbered_set.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/data/set/open_dataset.h"
#include "lib/data/set/set_digest.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::data {
namespace {

using Names = std::vector<std::string>;

const format::ClassNames kTrained{{"cat", "dog", "emu"}, "data.train"};

// A shard with a sample for each of these members, which end in `field`.
std::string shard_of(const Names& members, const std::string& field = "cls") {
  std::string tar;
  for (std::size_t i = 0; i < members.size(); ++i) {
    tar += tar_member(fmt::format("{}.png", i), grey_png(1)) +
           tar_member(fmt::format("{}.{}", i, field), members[i]);
  }
  return tar + tar_end();
}

recipe::Source shards_at(const Names& paths) {
  recipe::Source source;
  source.shards = paths;
  return source;
}

recipe::Source folder_at(const std::string& path) {
  recipe::Source source;
  source.folder = path;
  return source;
}

// The labels of all samples as they are read, then the set's class names; or the message.
std::string labels(const recipe::Source& source, const OpenOptions& options) {
  std::string text;
  const std::string message = message_of([&] {
    const auto set = open_dataset(source, "", options);
    for (std::int64_t shard = 0; shard < set->shard_count(); ++shard) {
      for (std::int64_t i = 0; i < set->shard_size(shard); ++i) {
        const RawSample raw = set->read(shard, i);
        CHECK(raw.label == set->label(shard, i));
        text += raw.label < 0 ? fmt::format("{} ", raw.labels) : fmt::format("{} ", raw.label);
      }
    }
    text += fmt::format("of {}", fmt::join(set->classes(), ","));
  });
  return text.find("of ") == std::string::npos ? message : text;
}

}  // namespace

TEST_CASE("folders get the numbers that training has for their names") {
  const TemporaryFolder folder;
  folder.write("val/cat/1.png", grey_png(1));
  folder.write("val/emu/1.png", grey_png(1));
  const recipe::Source val = folder_at(folder.file("val"));
  CHECK(labels(val, {.classes = kTrained}) == "0 2 of cat,dog,emu");
  CHECK(labels(val, {}) == "0 1 of cat,emu");
  folder.write("val/cow/1.png", grey_png(1));
  CHECK(labels(val, {.classes = kTrained})
            .starts_with(folder.file("val") +
                         ": has the class \"cow\", which data.train does not have\n"));
}

TEST_CASE("shards get the numbers that training has for the names in their classes.json") {
  const TemporaryFolder folder;
  const recipe::Source val = shards_at({folder.write("a.tar", shard_of({"0", "1", "[1, 2]"}))});
  CHECK(labels(val, {.classes = kTrained}) == "0 1 [1, 2] of cat,dog,emu");  // numbers count
  folder.write("classes.json", R"(["emu", "cat", "dog"])");
  CHECK(labels(val, {.classes = kTrained}) == "2 0 [0, 1] of cat,dog,emu");
  CHECK(labels(val, {.lazy = true, .classes = kTrained}) == "2 0 [0, 1] of cat,dog,emu");
  folder.write("classes.json", R"(["emu", "cat"])");
  CHECK(
      labels(val, {.classes = kTrained}) ==
      val.shards[0] +
          ": 2.cls: label 2 has no name among the 2 classes of its set, which are matched by name\n"
          "  correct the label, or name the class in classes.json");
  folder.write("classes.json", R"(["emu", "cow"])");
  CHECK(labels(val, {.classes = kTrained})
            .starts_with(folder.file("classes.json") +
                         ": has the class \"cow\", which data.train does not have\n"));
}

TEST_CASE(
    "names in JSON labels and folders in keys are training's where there is no classes.json") {
  const TemporaryFolder folder;
  const recipe::Source val = shards_at(
      {folder.write("a.tar", shard_of({R"({"y": "emu"})", R"({"y": ["dog", "cat"]})"}, "json"))});
  const OpenOptions by_json{.label = {.field = "json", .key = "y"}, .classes = kTrained};
  CHECK(labels(val, by_json) == "2 [1, 0] of cat,dog,emu");
  folder.write("classes.json", R"(["dog", "emu", "cat"])");
  CHECK(labels(val, by_json) == "2 [1, 0] of cat,dog,emu");

  const TemporaryFolder keys;
  const recipe::Source by_key =
      shards_at({keys.write("a.tar", tar_member("emu/0.png", grey_png(1)) + tar_end())});
  CHECK(labels(by_key, {.label = {.field = "folder", .key = ""}, .classes = kTrained}) ==
        "2 of cat,dog,emu");
}

TEST_CASE("shards of folders with other classes are no set") {
  const TemporaryFolder folder;
  const recipe::Source source = shards_at(
      {folder.write("x/a.tar", shard_of({"0"})), folder.write("y/b.tar", shard_of({"1"}))});
  folder.write("y/classes.json", R"(["cat", "dog"])");
  CHECK(labels(source, {}) == "0 1 of cat,dog");
  folder.write("x/classes.json", R"(["dog", "cat"])");
  CHECK(labels(source, {}) == folder.file("y/classes.json") + ": has other classes than " +
                                  folder.file("x/classes.json") +
                                  "\n  labels must have the same meaning in all parts of a set: "
                                  "use parts with the same classes");
  CHECK(labels(source, {.ignores_classes = true}) == "0 1 of ");
}

TEST_CASE("sources of a mixture are matched with the first that names classes") {
  const TemporaryFolder folder;
  recipe::Source mixed;
  mixed.sources = {shards_at({folder.write("x/a.tar", shard_of({"0", "1"}))}),
                   shards_at({folder.write("y/b.tar", shard_of({"0", "1"}))}),
                   folder_at(folder.file("z"))};
  folder.write("z/dog/1.png", grey_png(1));
  folder.write("y/classes.json", R"(["cat", "dog"])");
  CHECK(labels(mixed, {}) == "0 1 0 1 1 of cat,dog");
  folder.write("x/classes.json", R"(["dog", "cat"])");
  CHECK(labels(mixed, {}) == "0 1 1 0 0 of dog,cat");
  CHECK(labels(mixed, {.classes = kTrained}) == "1 0 0 1 1 of cat,dog,emu");
  folder.write("z/emu/1.png", grey_png(1));
  CHECK(labels(mixed, {}).starts_with(
      folder.file("z") + ": has the class \"emu\", which /data/train/sources/0 does not have\n"));
}

TEST_CASE("a set whose numbers change has another digest, and is otherwise the stored one") {
  const TemporaryFolder folder;
  const recipe::Source val = shards_at({folder.write("a.tar", shard_of({"0", "1"}))});
  const auto stored = open_dataset(val, "");
  CHECK(index_digest(*open_dataset(val, "", {.classes = kTrained})) == index_digest(*stored));
  folder.write("classes.json", R"(["dog", "cat"])");
  const auto set = open_dataset(val, "", {.classes = kTrained});
  CHECK(index_digest(*set) != index_digest(*stored));
  CHECK(set->size() == 2);
  CHECK(set->known_sizes() == stored->known_sizes());
  CHECK(set->open_digests() == stored->open_digests());
  CHECK(set->shard_path(0) == val.shards[0]);
  const RawSample raw = set->read(0, 1);
  CHECK(raw.image == grey_png(1));
  CHECK(set->image_place(0, raw) == stored->image_place(0, raw));
  CHECK(set->label_place(0, raw) == stored->label_place(0, raw));
}

}  // namespace scaletrain::data
