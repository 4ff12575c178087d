#include "lib/core/text/placeholder.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/core/error.h"

namespace scaletrain::core {
namespace {

std::string found(std::string_view start) {
  const auto placeholder = find_placeholder(start);
  return placeholder ? placeholder->found : "data";
}

}  // namespace

TEST_CASE("git-lfs pointers and pages of a server are known by their first bytes") {
  const char* const html = "is an HTML page, not the file itself";
  CHECK(found("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n") ==
        "is a git-lfs pointer, not the file itself");
  CHECK(found("<!DOCTYPE html>\n<html>") == html);
  CHECK(found("\xEF\xBB\xBF\r\n <HTML lang=\"en\">") == html);
  CHECK(found("<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code>") ==
        "is an error message of an object store, not the file itself");
}

TEST_CASE("data is no placeholder") {
  CHECK(found("") == "data");
  CHECK(found("version 2 of the text") == "data");
  CHECK(found("<?xml version=\"1.0\"?><svg>") == "data");
  CHECK(found("see <!doctype html>") == "data");
}

TEST_CASE("a placeholder is refused with its place and a remedy") {
  try {
    refuse_placeholder("a.tar", "version https://git-lfs.github.com/spec/v1\n");
    FAIL("no error");
  } catch (const DataError& error) {
    CHECK(std::string(error.what()) ==
          "a.tar: is a git-lfs pointer, not the file itself\n"
          "  fetch the file: git lfs pull, in the repository that it is from");
  }
  CHECK_NOTHROW(refuse_placeholder("a.tar", "data"));
  CHECK_NOTHROW(refuse_placeholder_file("/nonexistent/file"));
}

}  // namespace scaletrain::core
