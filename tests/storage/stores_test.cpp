#include "lib/storage/stores.h"

#include <doctest/doctest.h>

#include "tests/format/tar/tar_support.h"
#include "tests/storage/http_support.h"
#include "tests/storage/remote_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)
using scaletrain::test::TemporaryFolder;
namespace recipe = scaletrain::recipe;

TEST_CASE("the scheme decides the storage") {
  const Stores stores;
  const TemporaryFolder folder;
  CHECK(&stores.of("/data/a.tar") == &file_storage());
  CHECK(&stores.of("s3://b/a") == &stores.of("s3://c/d"));
  CHECK(&stores.of("s3://b/a") != &stores.of("gs://b/a"));
  CHECK(read_text(*stores.open(folder.write("a", "abc")), 1, 2) == "bc");
  CHECK(read_all(*stores.of("pipe:echo x").stream("pipe:echo x")) == "x\n");
  CHECK(thrown_by([&] { stores.open("ftp://h/a"); }) ==
        "65 ftp://h/a: \"ftp\" is not a known scheme\n"
        "  use a path, http://, https://, s3://, gs:// or pipe:");
}

TEST_CASE("with a cache remote objects are read once, commands become files") {
  const HttpServer server(
      [](const SeenRequest& request) { return object_answer(request, "0123456789"); });
  const TemporaryFolder folder;
  const recipe::Cache cache{folder.file("cache"), 1 << 20};
  {
    const Stores stores(quick_settings(), cache);
    CHECK(stores.index_folder() == folder.file("cache/index"));
    for (int i = 0; i < 3; ++i) {
      CHECK(read_text(*stores.open(server.url() + "/a.tar"), 3, 4) == "3456");
    }
    CHECK(server.count() == 3);  // its version, the version again when it is fetched, all of it
    const auto output = stores.open("pipe:printf abc; echo x >> " + folder.file("runs"));
    CHECK(output->identity().bytes == 3);
    CHECK(read_text(*output, 1, 2) == "bc");
  }
  const Stores stores(quick_settings(), cache);
  CHECK(read_text(*stores.open("pipe:printf abc; echo x >> " + folder.file("runs")), 0, 3) ==
        "abc");
  CHECK(folder.read("runs") == "x\n");
}

TEST_CASE("without a cache nothing is fetched ahead") {
  const HttpServer server([](const SeenRequest&) { return std::string(); });
  const Stores stores(quick_settings(), std::nullopt);
  stores.prefetch({server.url() + "/a.tar"});
  CHECK(stores.index_folder().empty());
  CHECK(server.count() == 0);
}
