#include "lib/data/set/quarantine_lists.h"

#include <doctest/doctest.h>

#include "lib/data/set/shards.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;        // NOLINT(google-build-using-namespace)
using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

void quarantine(const TemporaryFolder& folder, std::vector<format::Quarantined> entries) {
  folder.write("quarantine.json",
               format::encode_quarantine(format::Quarantine(std::move(entries))));
}

}  // namespace

TEST_CASE("a data set leaves out the shards and samples in quarantine beside them") {
  const TemporaryFolder folder;
  const std::vector<std::string> paths{folder.write("a.tar", grey_shard(0, 4)),
                                       folder.write("b.tar", "no tar"),
                                       folder.write("c.tar", grey_shard(10, 3))};
  CHECK(message_of([&] { open_shards(paths, ""); }).find("b.tar") != std::string::npos);
  quarantine(folder, {{"b.tar", "", "no tar"}, {"a.tar", "00001", "bad"}, {"z.tar", "k", "gone"}});
  const auto dataset = open_shards(paths, "");
  CHECK(dataset->shard_count() == 2);
  CHECK(dataset->size() == 3 + 3);
  CHECK(dataset->read(0, 1).key == "00002");
  CHECK(dataset->read(1, 0).shard == "c.tar");
}

TEST_CASE("lists are found folder by folder, and a damaged one is refused") {
  const TemporaryFolder folder, other;
  quarantine(folder, {{"a.tar", "k", "bad"}});
  const QuarantineLists lists({folder.file("a.tar"), other.file("a.tar")}, storage::Stores());
  CHECK(lists.keys_of(folder.file("a.tar")) == std::vector<std::string>{"k"});
  CHECK(lists.keys_of(other.file("a.tar")).empty());
  CHECK(!lists.holds_shard(folder.file("a.tar")));
  folder.write("quarantine.json", "{}");
  CHECK_THROWS_AS(QuarantineLists({folder.file("a.tar")}, storage::Stores()),
                  core::CheckpointError);
}
