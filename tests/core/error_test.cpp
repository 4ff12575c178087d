#include "lib/core/error.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <new>
#include <system_error>

using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

TEST_CASE("an error says where, what was found and what to do, and knows its exit code") {
  const DataError error("a.tar: 7.cls", "label 12", "labels are 0..9");
  CHECK(std::string(error.what()) == "a.tar: 7.cls: label 12\n  labels are 0..9");
  CHECK(error.exit_code() == ExitCode::kData);
  CHECK(error.place() == "a.tar: 7.cls");
  CHECK(std::string(StorageError("/x", "full").what()) == "/x: full");
}

TEST_CASE("every kind of error has the exit code of the table") {
  CHECK(static_cast<int>(UsageError("", "").exit_code()) == 2);
  CHECK(static_cast<int>(RecipeError("", "").exit_code()) == 2);
  CHECK(static_cast<int>(DataError("", "").exit_code()) == 65);
  CHECK(static_cast<int>(CheckpointError("", "").exit_code()) == 65);
  CHECK(static_cast<int>(OutOfMemoryError("", "").exit_code()) == 71);
  CHECK(static_cast<int>(StorageError("", "").exit_code()) == 74);
  CHECK(static_cast<int>(StoppedError("", "").exit_code()) == 75);
  CHECK(static_cast<int>(DivergedError("", "").exit_code()) == 76);
  CHECK(static_cast<int>(InternalError("", "").exit_code()) == 1);
}

TEST_CASE("foreign exceptions have a text and a code too") {
  CHECK(exit_code_of(std::bad_alloc()) == ExitCode::kMemory);
  CHECK(describe(std::bad_alloc()) == "out of memory on the host");
  for (const int error : {EAGAIN, ENOMEM, EMFILE, ENFILE}) {
    CHECK(exit_code_of(std::system_error(error, std::generic_category())) == ExitCode::kMemory);
  }
  CHECK(exit_code_of(std::system_error(EACCES, std::system_category())) == ExitCode::kFailure);
  CHECK(exit_code_of(std::runtime_error("x")) == ExitCode::kFailure);
  CHECK(describe(std::runtime_error("x")) == "x");
}

TEST_CASE("errno_text gives text and name") {
  CHECK(errno_text(EACCES) == "Permission denied (EACCES)");
  CHECK(errno_text(99999) == "error (errno 99999)");
}
