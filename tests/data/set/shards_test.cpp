#include "lib/data/set/shards.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/core/disk/disk.h"
#include "lib/core/log.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)
namespace core = scaletrain::core;
namespace recipe = scaletrain::recipe;

namespace {

std::string open_error(const std::vector<std::string>& paths) {
  return message_of([&] { open_shards(paths, ""); });
}

}  // namespace

TEST_CASE("samples of shards are read by number") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a.tar", grey_shard(0, 3)),
                    b = folder.write("b.tar", grey_shard(7, 2));
  const auto dataset = open_shards({a, b}, "");
  CHECK(dataset->size() == 5);
  CHECK(dataset->shard_count() == 2);
  CHECK(shard_sizes(*dataset) == std::vector<std::int64_t>{3, 2});
  const RawSample sample = dataset->read(1, 1);
  CHECK(sample.image == grey_png(8));
  CHECK(sample.label == 1);
  CHECK(sample.shard == "b.tar");
  CHECK(sample.key == "00001");
  CHECK(sample.extension == "png");
  CHECK(dataset->image_place(1, sample) == b + ": 00001.png (byte 2560)");
  CHECK(dataset->label_place(1, sample) == b + ": 00001.cls");
  CHECK(std::filesystem::exists(a + ".idx"));
}

TEST_CASE("a label may be a list of classes, which is read with its sample") {
  const TemporaryFolder folder;
  const std::string path = folder.write(
      "a.tar", tar_member("1.png", grey_png(1)) + tar_member("1.cls", "[7, 2]") +
                   tar_member("2.cls", "[]") + tar_member("2.png", grey_png(2)) +
                   tar_member("3.png", grey_png(3)) + tar_member("3.cls", "5") + tar_end());
  const auto dataset = open_shards({path}, "");
  CHECK(dataset->label(0, 0) == -1);
  CHECK(dataset->label(0, 2) == 5);
  RawSample raw;
  const std::vector<std::vector<std::int64_t>> expected{{7, 2}, {}};
  for (std::size_t i = 0; i < 2; ++i) {
    dataset->read_into(0, static_cast<std::int64_t>(i), raw);
    CHECK(raw.label == -1);
    CHECK(raw.labels == expected[i]);
  }
  dataset->read_into(0, 2, raw);
  CHECK(raw.label == 5);
  // The list of the first sample is damaged behind the index.
  std::string bytes = core::read_file(path, 1 << 20, core::ExitCode::kData);
  bytes.replace(bytes.find("[7, 2]"), 6, "[cat!]");
  folder.write("b.tar", bytes);
  std::filesystem::copy_file(folder.file("b.tar"), path,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(message_of([&] { dataset->read(0, 0); }).find("the shard was changed") !=
        std::string::npos);
}

TEST_CASE("classes are those of classes.json beside the shards") {
  const TemporaryFolder folder;
  const std::string shard = folder.write("a.tar", grey_shard(0, 1));
  CHECK(open_shards({shard}, "")->classes().empty());
  const std::string path = folder.write("classes.json", "[\"zero\", \"one\"]\n");
  CHECK(open_shards({shard}, "")->classes() == std::vector<std::string>{"zero", "one"});
  for (const std::string& text :
       {std::string("{}"), std::string("[1]"), std::string("[\"a\""), std::string(),
        std::string("[[\"a\"]]"), std::string(1'000'000, '[')}) {
    folder.write("classes.json", text);
    CHECK(open_error({shard}) ==
          path +
              ": is not a JSON array of strings\n"
              "  write the names of the classes by label, as [\"cat\", \"dog\"]");
  }
}

TEST_CASE("a missing, truncated or empty set of shards is reported when it is opened") {
  const TemporaryFolder folder;
  const std::string sound = folder.write("a.tar", grey_shard(0, 3)), absent = folder.file("b.tar");
  CHECK(open_error({sound, absent}) ==
        absent + ": No such file or directory (ENOENT)\n  check the path");
  const std::string cut = folder.write("cut.tar", grey_shard(0, 3).substr(0, 2048));
  CHECK(open_error({sound, cut}) ==
        cut +
            ": byte 2048: ends without the two zero blocks that end a tar\n"
            "  the shard is truncated: copy or write it again");
  const std::string empty = folder.write("empty.tar", tar_end());
  CHECK(open_error({empty}) ==
        empty + ": no sample in 1 shard\n  check the shards that the recipe names");
}

TEST_CASE("a shard that is changed while it is read is reported") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.tar", grey_shard(0, 3));
  const auto unread = open_shards({path}, "");
  const auto open = open_shards({path}, "");
  const RawSample before = open->read(0, 2);
  REQUIRE(::truncate(path.c_str(), 1024) == 0);
  CHECK(message_of([&] { open->read(0, 2); }) ==
        path +
            ": ends at byte 1024 while bytes 4096 to 4608 are read\n"
            "  the file is truncated, or was cut while it was read");
  CHECK(message_of([&] { unread->read(0, 0); }) ==
        path +
            ": is not the file that was indexed: its size or time changed\n"
            "  start again, and do not change shards while they are read");
  // Overwritten in place by another shard: the descriptor sees other bytes.
  folder.write("a.tar", tar_member("0.png", "another") + tar_end());
  CHECK(message_of([&] { open->read(0, 0); }) ==
        path +
            ": byte 0: is not the member that the index names\n"
            "  the shard was changed: start again, and do not change shards while they are read");
}

TEST_CASE("names of samples may be anything, and messages show them escaped") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.tar", tar_member("../\x1b\n.png", grey_png(1)) +
                                                     tar_member("../\x1b\n.cls", "1") + tar_end());
  const auto dataset = open_shards({path}, "");
  CHECK(dataset->label_place(0, dataset->read(0, 0)) == path + ": ../\\x1b\\n.cls");
}

TEST_CASE("a lazy set opens a shard when it is asked for, and takes sizes that are known") {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.write("a.tar", grey_shard(0, 3)),
                                       folder.write("b.tar", grey_shard(3, 2)),
                                       folder.write("c.tar", grey_shard(5, 4))};
  const auto indexes = [&] {
    int count = 0;
    for (const std::string& path : paths) count += std::filesystem::exists(path + ".idx") ? 1 : 0;
    return count;
  };
  const auto dataset = open_shards(paths, "", {.lazy = true, .shard_sizes = {-1, 2, -1}});
  CHECK(indexes() == 0);
  CHECK(dataset->known_sizes() == std::vector<std::int64_t>{-1, 2, -1});
  CHECK(dataset->shard_size(1) == 2);
  CHECK(indexes() == 0);
  CHECK(dataset->shard_size(2) == 4);
  CHECK(indexes() == 1);
  CHECK(dataset->known_sizes() == std::vector<std::int64_t>{-1, 2, 4});
  CHECK(dataset->read(1, 1).image == grey_png(4));
  CHECK(dataset->size() == 9);
  CHECK(indexes() == 3);

  const auto changed = open_shards(paths, "", {.lazy = true, .shard_sizes = {3, 7, -1}});
  CHECK(changed->read(0, 0).image == grey_png(0));
  for (int i = 0; i < 2; ++i) {
    CHECK(message_of([&] { changed->read(1, 0); }) ==
          paths[1] +
              ": has 2 samples, and had 7 before the run was resumed\n"
              "  the shard was changed: put the old one back, or start a new run");
  }
}

TEST_CASE("a lazy set's shard with other samples is warned of when it is opened") {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.write("a.tar", grey_shard(0, 3)),
                                       folder.write("b.tar", grey_shard(3, 3))};
  const auto before = open_shards(paths, "", {.lazy = true});
  CHECK(before->open_digests() == std::vector<std::int64_t>{-1, -1});
  before->read(1, 0);
  const std::vector<std::int64_t> digests = before->open_digests();
  CHECK(digests[0] == -1);
  REQUIRE(digests[1] >= 0);

  std::vector<std::string> warnings;
  scaletrain::core::set_warning_listener(
      [&](const std::string& line) { warnings.push_back(line); });
  const auto resumed = [&] {
    return open_shards(paths, "", {.lazy = true, .shard_sizes = {-1, 3}, .shard_digests = digests});
  };
  resumed()->read(1, 0);
  CHECK(warnings.empty());
  // Of the same number, sizes and labels: the bytes differ.
  folder.write("b.tar", grey_shard(13, 3));
  std::filesystem::remove(paths[1] + ".idx");
  const auto replaced = resumed();
  replaced->read(0, 0);
  CHECK(warnings.empty());
  replaced->read(1, 0);
  replaced->read(1, 1);
  scaletrain::core::set_warning_listener(nullptr);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("the resumed run is not bit for bit equal: " + paths[1] +
                         " holds other samples") != std::string::npos);
  CHECK(replaced->open_digests()[1] != digests[1]);
}

TEST_CASE("a position of the streamed order means nothing in another number of shards") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.tar", grey_shard(0, 3));
  recipe::Source source;
  source.shards = {path};
  CHECK(message_of([&] {
          open_dataset(source, "", {.lazy = true, .shard_sizes = {3, -1}});
        }) == path +
                  ": is the first of 1 shard, and there were 2 before the run was resumed\n"
                  "  a position of the streamed order counts the samples of these shards: put the "
                  "old ones back, or start a new run");
}
