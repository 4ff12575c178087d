#include "launcher/platform/job_cgroup.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/temporary_folder.h"

namespace scaletrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMounts =
    "24 1 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "36 25 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("a process's cgroup is below the mount of cgroup2, as far as that shows it") {
  CHECK(find_cgroup(kMounts, "1:cpu:/x\n0::/user.slice/a b.scope\n") ==
        "/sys/fs/cgroup/user.slice/a b.scope");
  CHECK(find_cgroup(kMounts, "0::/\n") == "/sys/fs/cgroup/");
  CHECK(find_cgroup(kMounts, "1:cpu:/x\n") == "");
  CHECK(find_cgroup(kMounts, "0::/../other\n") == "");  // of another namespace
  CHECK(find_cgroup("24 1 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n", "0::/a\n") == "");
  // A container's, where the mount shows a part.
  const std::string part = "36 25 0:30 /docker/id /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
  CHECK(find_cgroup(part, "0::/docker/id/init\n") == "/sys/fs/cgroup/init");
  CHECK(find_cgroup(part, "0::/docker/id\n") == "/sys/fs/cgroup");
  CHECK(find_cgroup(part, "0::/docker/idle\n") == "");
}

TEST_CASE("where no cgroup can be made there is none, and nothing is left") {
  const test::TemporaryFolder folder;  // no cgroup: it has no list of processes
  for (const fs::path& parent : {folder.path, fs::path("/nonexistent"), fs::path()}) {
    JobCgroup cgroup(parent);
    cgroup.make();
    CHECK(cgroup.fd() == -1);
    cgroup.end();
    cgroup.release();
  }
  CHECK(fs::is_empty(folder.path));
}

}  // namespace scaletrain::launcher
