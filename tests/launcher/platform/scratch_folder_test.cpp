#include "launcher/platform/scratch_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

namespace scaletrain::launcher {

TEST_CASE("a scratch folder is new, private and gone at its end, also after a signal") {
  std::filesystem::path folder;
  {
    ScratchFolder one("scaletrain-test-"), other("scaletrain-test-");
    folder = one.file("a").parent_path();
    CHECK(folder != other.file("a").parent_path());
    struct stat found {};
    REQUIRE(::stat(folder.c_str(), &found) == 0);
    CHECK((found.st_mode & 0777) == 0700);
    std::ofstream(one.file("a")) << "text";
    CHECK(!one.stops().next());
    ::raise(SIGTERM);
    CHECK(one.stops().next() == SIGTERM);
  }
  CHECK(!std::filesystem::exists(folder));
  CHECK(stopped_status(SIGTERM) == 75);
  CHECK(stopped_status(SIGINT) == 130);
}

}  // namespace scaletrain::launcher
