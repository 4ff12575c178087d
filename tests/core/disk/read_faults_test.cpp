#include "lib/core/disk/read_faults.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;

namespace scaletrain::core {
namespace {

// The error of `body` as "CODE WHAT"; "" where it throws none.
template <class Body>
std::string fault_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.exit_code())) + " " + error.what();
  }
  return "";
}

TEST_CASE("a fault of the machine is distinguished from a missing path") {
  for (const int error : {ENOENT, ENOTDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG}) {
    CAPTURE(error);
    CHECK(fault_of([&] { throw_read_fault("a", error); }) == "");
  }
  CHECK(fault_of([] { throw_read_fault("a", EIO); }) ==
        "74 a: cannot be read: Input/output error (EIO)\n  check the disk");
  CHECK(fault_of([] { throw_read_fault("a", ESTALE); }) ==
        "74 a: cannot be read: Stale file handle (ESTALE)\n  check the disk");
  CHECK(fault_of([] { throw_read_fault("a", EMFILE); }) ==
        "71 a: cannot be read: Too many open files (EMFILE)\n  raise the limit of open files: "
        "ulimit -n 65536");
  CHECK(fault_of([] { throw_read_fault("a", ENOMEM); }) ==
        "71 a: cannot be read: Cannot allocate memory (ENOMEM)\n  leave more memory free");
}

TEST_CASE("a folder is listed whole, or its error names it") {
  const test::TemporaryFolder folder;
  folder.write("b", "");
  folder.write("a", "");
  CHECK(names_in(folder.path) == std::vector<std::string>{"a", "b"});
  CHECK(names_in(folder.path / "absent").empty());
  CHECK(fault_of([&] { names_in(folder.path / "a"); }) ==
        "74 " + folder.file("a") +
            ": cannot be read: Not a directory (ENOTDIR)\n  check the path and its permissions");

  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const std::string fault = fault_of([&] { names_in(folder.path); });
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(fault == "71 " + folder.path.string() +
                     ": cannot be read: Too many open files (EMFILE)\n  raise the limit of open "
                     "files: ulimit -n 65536");
}

TEST_CASE("what lies at a path is said, or why that cannot be said") {
  const test::TemporaryFolder folder;
  folder.write("a", "");
  fs::create_symlink("loop", folder.path / "loop");
  CHECK(type_at(folder.path) == fs::file_type::directory);
  CHECK(type_at(folder.path / "a") == fs::file_type::regular);
  CHECK(type_at(folder.path / "a" / "b") == fs::file_type::not_found);
  CHECK(fault_of([&] { type_at(folder.path / "loop"); }) ==
        "74 " + folder.file("loop") +
            ": cannot be read: Too many levels of symbolic links (ELOOP)\n  check the path and "
            "its permissions");
}

}  // namespace
}  // namespace scaletrain::core
