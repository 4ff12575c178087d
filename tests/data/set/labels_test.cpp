// Labels that are not in .cls (/data/label), read by training.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/core/log.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

namespace scaletrain::data {
namespace {

struct Shard {
  explicit Shard(const std::string& members) {
    source.shards = {folder.write("a.tar", members + tar_end())};
  }

  // Each sample's label, or list of labels; or the message.
  std::string labels(const OpenOptions& options) const {
    std::string text;
    const std::string message = message_of([&] {
      const auto set = open_dataset(source, "", options);
      for (std::int64_t i = 0; i < set->size(); ++i) {
        const RawSample raw = set->read(0, i);
        CHECK(raw.label == set->label(0, i));
        text += raw.label < 0 ? fmt::format("{} ", raw.labels) : fmt::format("{} ", raw.label);
      }
    });
    return text.empty() ? message : text;
  }

  TemporaryFolder folder;
  recipe::Source source;
};

TEST_CASE("labels may be values of a field that is JSON, and the index knows which") {
  const Shard shard(tar_member("a.png", grey_png(1)) + tar_member("a.json", R"({"y": 3, "z": 0})") +
                    tar_member("a.cls", "9") + tar_member("b.png", grey_png(2)) +
                    tar_member("b.json", R"({"y": [5, 6], "z": "dog"})") +
                    tar_member("b.cls", "8"));
  shard.folder.write("classes.json", R"(["cat", "dog"])");
  for (int i = 0; i < 2; ++i) {  // the index that another one wrote is not taken
    CHECK(shard.labels({}) == "9 8 ");
    CHECK(shard.labels({.label = {.field = "json", .key = "y"}}) == "3 [5, 6] ");
    CHECK(shard.labels({.label = {.field = "json", .key = "z"}}) == "0 1 ");
  }
  CHECK(shard.labels({.label = {.field = "json", .key = ""}}).find("is not a class number") !=
        std::string::npos);
}

TEST_CASE("the class may be the folder in a key") {
  const Shard shard(tar_member("x/dog/0.png", grey_png(1)) + tar_member("cat/0.png", grey_png(2)));
  const OpenOptions by_folder{.label = {.field = "folder", .key = ""}};
  CHECK(shard.labels(by_folder).find("its folder is not a class") != std::string::npos);
  shard.folder.write("classes.json", R"(["cat", "dog"])");
  CHECK(shard.labels(by_folder) == "1 0 ");
  shard.folder.write("classes.json", R"(["dog", "cat"])");
  CHECK(shard.labels(by_folder) == "0 1 ");
}

TEST_CASE("samples without an image or a label are left out where bad samples are skipped") {
  const Shard shard(tar_member("a.png", grey_png(1)) + tar_member("b.png", grey_png(2)) +
                    tar_member("b.cls", "4") + tar_member("c.cls", "5"));
  std::vector<std::string> heard;
  core::set_warning_listener([&](const std::string& line) { heard.push_back(line); });
  CHECK(shard.labels({.skip_bad = true}) == "4 ");
  core::set_warning_listener({});
  REQUIRE(heard.size() == 1);
  CHECK(heard[0] == "warning: " + shard.source.shards[0] +
                        ": 2 samples without an image or a label are left out (data.bad_samples)");
  CHECK(shard.labels({}).find("a.tar: a: has no label") != std::string::npos);
}

}  // namespace
}  // namespace scaletrain::data
