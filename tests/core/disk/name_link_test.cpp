#include "lib/core/disk/name_link.h"

#include <doctest/doctest.h>

#include "lib/core/disk/watched_disk.h"
#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;

namespace scaletrain::core {
namespace {

// A disk on which the first `failures` symbolic links cannot be made.
class FewLinks : public WatchedDisk {
 public:
  explicit FewLinks(int failures) : WatchedDisk(system_disk(), [] {}), left_(failures) {}

  void make_link(const fs::path& target, const fs::path& link) override {
    if (left_-- > 0) throw StorageError(link.string(), "cannot make the link: EOPNOTSUPP");
    WatchedDisk::make_link(target, link);
  }

 private:
  int left_;
};

TEST_CASE("a name points at another by a symbolic link, or by a file where there are none") {
  for (const int failures : {0, 1, 2, 99}) {
    CAPTURE(failures);
    const test::TemporaryFolder folder;
    const fs::path latest = folder.path / "latest";
    FewLinks disk(failures);
    const std::string why = point_name_link(disk, "step-1", latest);
    CHECK(fs::is_symlink(latest) == (failures < 2));
    CHECK(why == (failures < 2 ? "" : "cannot make the link: EOPNOTSUPP"));
    CHECK(read_name_link(latest) == "step-1");
    // The other kind is replaced.
    point_name_link(disk, "step-2", latest);
    CHECK(read_name_link(latest) == "step-2");
    CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
  }
}

TEST_CASE("what is neither a link nor a file with a name points nowhere") {
  const test::TemporaryFolder folder;
  fs::create_directory(folder.path / "folder");
  folder.write("empty", "");
  folder.write("lines", "one\ntwo\n");
  folder.write("path", "../elsewhere");
  folder.write("long", std::string(300, 'x'));
  folder.write("name", "step-1");  // without a newline: written by a person
  for (const char* name : {"absent", "folder", "empty", "lines", "path", "long"}) {
    CAPTURE(name);
    CHECK(read_name_link(folder.path / name).empty());
  }
  CHECK(read_name_link(folder.path / "name") == "step-1");
}

}  // namespace
}  // namespace scaletrain::core
