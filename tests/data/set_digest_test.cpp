#include "lib/data/set_digest.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

namespace scaletrain::data {
namespace {

std::string digest_of(const std::string& first, const std::string& second) {
  const test::TemporaryFolder folder;
  recipe::Source source;
  source.shards = {folder.write("a.tar", first), folder.write("b.tar", second)};
  return set_digest(*open_dataset(source, ""));
}

}  // namespace

TEST_CASE("a set is told by its samples, not by where it lies or when it was written") {
  const std::string digest = digest_of(grey_shard(0, 40), grey_shard(40, 40));
  CHECK(digest.size() == 16);
  CHECK(digest_of(grey_shard(0, 40), grey_shard(40, 40)) == digest);
  CHECK(digest_of(grey_shard(1, 40), grey_shard(41, 40)) != digest);
  CHECK(digest_of(grey_shard(0, 40), grey_shard(40, 39)) != digest);
  CHECK_FALSE(digest_of(grey_shard(0, 1), grey_shard(1, 1)).empty());
}

}  // namespace scaletrain::data
