#include "lib/data/set/set_digest.h"

#include <doctest/doctest.h>

#include "lib/data/set/open_dataset.h"
#include "tests/data/image_support.h"

namespace scaletrain::data {
namespace {

std::string digest_of(const std::string& first, const std::string& second) {
  const test::TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", first), folder.write("b.tar", second)};
  return set_digest(*open_dataset(source, ""));
}

std::string index_digest_of(const recipe::Source& source) {
  return index_digest(*open_dataset(source, ""));
}

// Two shards of 40 samples and one of `last`.
std::string index_digest_of_shards(const std::string& last,
                                   std::optional<std::int64_t> limit = std::nullopt) {
  const test::TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", grey_shard(0, 40)), folder.write("b.tar", last)};
  source.limit = limit;
  return index_digest_of(source);
}

}  // namespace

TEST_CASE("the digest of a set covers labels and sizes of all samples, without reading one") {
  const std::string digest = index_digest_of_shards(grey_shard(40, 40));
  std::string other_labels = grey_shard(40, 40);
  other_labels.replace(other_labels.find("00007.cls") + 512, 1, "8");
  CHECK(digest.size() == 16);
  CHECK(index_digest_of_shards(grey_shard(40, 40)) == digest);
  CHECK(index_digest_of_shards(grey_shard(40, 39)) != digest);
  CHECK(index_digest_of_shards(other_labels) != digest);
  CHECK(index_digest_of_shards(grey_shard(40, 40), 20) != digest);
  CHECK(index_digest_of_shards(grey_shard(40, 40), 20) != index_digest_of_shards(other_labels, 20));
}

TEST_CASE("the digest of some samples is of their lists of classes too") {
  const auto with_list = [](const std::string& list) {
    const std::string shard =
        tar_member("1.png", grey_png(1)) + tar_member("1.cls", list) + tar_end();
    return digest_of(shard, grey_shard(0, 1));
  };
  CHECK(with_list("[1, 2]") == with_list("1,2 "));
  CHECK(with_list("[1, 2]") != with_list("[1, 3]"));
}

TEST_CASE("the digest of a folder covers the names of its classes and files") {
  const auto digest_of = [](const std::string& last) {
    const test::TemporaryFolder folder;
    for (const std::string& name : {std::string("cat/1.png"), std::string("dog/2.png"), last}) {
      folder.write(name, "");
    }
    recipe::Source source;
    source.folder = folder.path;
    return index_digest_of(source);
  };
  CHECK(digest_of("dog/3.png") == digest_of("dog/3.png"));
  CHECK(digest_of("dog/3.png") != digest_of("dog/4.png"));
  CHECK(digest_of("dog/3.png") != digest_of("cat/3.png"));
}

TEST_CASE("the digest of a set depends on its samples, not on its path or time") {
  const std::string digest = digest_of(grey_shard(0, 40), grey_shard(40, 40));
  CHECK(digest.size() == 16);
  CHECK(digest_of(grey_shard(0, 40), grey_shard(40, 40)) == digest);
  CHECK(digest_of(grey_shard(1, 40), grey_shard(41, 40)) != digest);
  CHECK(digest_of(grey_shard(0, 40), grey_shard(40, 39)) != digest);
  CHECK_FALSE(digest_of(grey_shard(0, 1), grey_shard(1, 1)).empty());
}

}  // namespace scaletrain::data
