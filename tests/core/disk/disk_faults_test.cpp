#include "lib/core/disk/disk_faults.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "lib/core/error.h"

namespace core = scaletrain::core;

TEST_CASE("a fault of the disk names the path, what was done and what to do about that error") {
  const auto message_of = [](int error) {
    try {
      core::throw_disk_fault("/a/b", "write", error);
    } catch (const core::StorageError& thrown) {
      return std::string(thrown.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(message_of(EACCES) ==
        "/a/b: cannot write: Permission denied (EACCES)\n  choose another folder or correct its "
        "permissions");
  for (const int error : {ENOSPC, EDQUOT}) {
    CHECK(message_of(error).ends_with("\n  free space on this disk or choose another folder"));
  }
  CHECK(message_of(EFBIG) ==
        "/a/b: cannot write: File too large (EFBIG: the limit of file sizes is ulimit -f)\n  raise "
        "the limit of file sizes (ulimit -f), or use a file system for larger files");
  CHECK(message_of(EIO).ends_with(
      "\n  the disk reports a fault: check it, or choose another folder"));
}
