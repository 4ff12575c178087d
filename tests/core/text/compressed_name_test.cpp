#include "lib/core/text/compressed_name.h"

#include <doctest/doctest.h>

using namespace scaletrain::core;  // NOLINT(google-build-using-namespace)

TEST_CASE("compressed tars are recognized by their extension, which is removed") {
  for (const char* path : {"/data/a.tar.gz", "a.tgz", "s3://bucket/set/a.tar.zst",
                           "https://host/a.tar.gz?version=3"}) {
    CAPTURE(path);
    CHECK(is_compressed(path));
    CHECK(tar_name(path) == "a.tar");
  }
}

TEST_CASE("other names stay as they are") {
  for (const char* path : {"/x.tar.gz/a.tar", "s3://bucket/a.tar", "https://host/a.tar?as=b.tgz",
                           "pipe:cat a.tar", "pipe:gzip -dc a.tar"}) {
    CAPTURE(path);
    CHECK(!is_compressed(path));
    CHECK(tar_name(path) == "a.tar");
  }
  CHECK(!is_compressed("pipe:gzip -dc a.tar.gz"));  // the command decompresses it
  CHECK(tar_name("pipe:gzip -dc a.tar.gz") == "a.tar.gz");
}
