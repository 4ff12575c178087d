#include <doctest/doctest.h>

#include "lib/core/text/hash.h"
#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("open_dataset opens what the recipe names") {
  const TemporaryFolder folder;
  scaletrain::recipe::Source shards, classes;
  shards.shards = {folder.write("a.tar", grey_shard(0, 3))};
  folder.write("images/cat/1.png", grey_png(1));
  classes.folder = folder.file("images");
  CHECK(open_dataset(shards, "")->size() == 3);
  CHECK(open_dataset(classes, "")->classes() == std::vector<std::string>{"cat"});
}

TEST_CASE("a sample's digest is XXH3-64 of epoch, position, shard and key") {
  RawSample sample;
  sample.shard = "train-000000.tar";
  sample.key = "00042";
  using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
  CHECK(sample_digest(2, 259, sample) ==
        scaletrain::core::xxh3_64("\x02\0\0\0\0\0\0\0\x03\x01\0\0\0\0\0\0train-000000.tar\0"
                                  "00042"s));
}
