#include "launcher/jobs/checks/data_cards.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/temporary_folder.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

TEST_CASE("a git-lfs pointer or an HTML page in place of card.json is named, whatever set has it") {
  const test::TemporaryFolder folder;
  folder.write("shards/card.json", "{}");
  folder.write("more/card.json", "{}");
  folder.write("pictures/card.json", "<html>");
  recipe::Data data;
  recipe::Source of_shards, of_folder;
  of_shards.shards = {folder.file("shards/a.tar"), "s3://bucket/b.tar", folder.file("more/c.tar")};
  of_folder.folder = folder.file("pictures");
  data.train.sources = {of_shards};
  CHECK_NOTHROW(launcher::check_cards(data));
  data.val = of_folder;
  CHECK_THROWS_WITH_AS(launcher::check_cards(data),
                       doctest::Contains("pictures/card.json: is an HTML page"), core::DataError);
  data.val.reset();
  folder.write("more/card.json", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n");
  CHECK_THROWS_WITH_AS(launcher::check_cards(data),
                       doctest::Contains("more/card.json: is a git-lfs pointer"), core::DataError);
}

TEST_CASE("the cards beside shards and folders are kept with the run, and old ones are not") {
  const test::TemporaryFolder folder;
  folder.write("shards/card.json", "one");
  folder.write("pictures/card.json", "two");
  folder.write("run/cards/test.json", "of an earlier start");
  recipe::Data data;
  data.train.shards = {(folder.path / "shards/a.tar").string()};
  data.val.emplace().folder = (folder.path / "pictures").string();
  data.test.emplace().shards = {(folder.path / "elsewhere/b.tar").string()};
  launcher::record_cards(data, folder.path / "run", /*is_resumed=*/false);
  CHECK(folder.read("run/cards/train.json") == "one");
  CHECK(folder.read("run/cards/val.json") == "two");
  CHECK(!fs::exists(folder.path / "run/cards/test.json"));
  folder.write("text/b.tokens.json", "three");
  data.test->shards.clear();
  data.test->tokens = {(folder.path / "text/b-000000.bin").string()};
  launcher::record_cards(data, folder.path / "run", /*is_resumed=*/false);
  CHECK(folder.read("run/cards/test.json") == "three");
  fs::remove(folder.path / "shards/card.json");
  launcher::record_cards(data, folder.path / "run", /*is_resumed=*/true);
  CHECK(!fs::exists(folder.path / "run/cards/train.json"));
}

TEST_CASE("a resumed run keeps the card of its training tokens, also where theirs was removed") {
  const test::TemporaryFolder folder;
  recipe::Data data;
  data.train.tokens = {folder.file("text/a-000000.bin")};
  folder.write("text/a.tokens.json", "the run's");
  launcher::record_cards(data, folder.path / "run", /*is_resumed=*/false);
  fs::remove(folder.path / "text/a.tokens.json");
  launcher::record_cards(data, folder.path / "run", /*is_resumed=*/true);
  CHECK(folder.read("run/cards/train.json") == "the run's");
  launcher::record_cards(data, folder.path / "run", /*is_resumed=*/false);
  CHECK(!fs::exists(folder.path / "run/cards/train.json"));
}
