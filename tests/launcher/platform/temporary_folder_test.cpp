#include "launcher/platform/temporary_folder.h"

#include <doctest/doctest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv

#include <optional>
#include <string>

namespace scaletrain::launcher {

TEST_CASE("temporary files go to TMPDIR, or to /tmp where that is no folder") {
  const char* const set = std::getenv("TMPDIR");
  const std::optional<std::string> before = set == nullptr ? std::nullopt : std::optional(set);
  for (const char* const bad : {"", "/nonexistent", "/etc/passwd"}) {
    setenv("TMPDIR", bad, 1);
    CHECK(temporary_folder() == "/tmp");
  }
  setenv("TMPDIR", "/dev/shm", 1);
  CHECK(temporary_folder() == "/dev/shm");
  unsetenv("TMPDIR");
  CHECK(temporary_folder() == "/tmp");
  if (before) setenv("TMPDIR", before->c_str(), 1);
}

}  // namespace scaletrain::launcher
