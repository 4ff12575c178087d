#include "launcher/jobs/checks/data_cards.h"

#include <doctest/doctest.h>

#include "tests/temporary_folder.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

namespace {}  // namespace

TEST_CASE("the cards beside shards and folders are kept with the run, and old ones are not") {
  const test::TemporaryFolder folder;
  folder.write("shards/card.json", "one");
  folder.write("pictures/card.json", "two");
  folder.write("run/cards/test.json", "of an earlier start");
  recipe::Data data;
  data.train.shards = {(folder.path / "shards/a.tar").string()};
  data.val.emplace().folder = (folder.path / "pictures").string();
  data.test.emplace().shards = {(folder.path / "elsewhere/b.tar").string()};
  launcher::record_cards(data, folder.path / "run");
  CHECK(folder.read("run/cards/train.json") == "one");
  CHECK(folder.read("run/cards/val.json") == "two");
  CHECK(!fs::exists(folder.path / "run/cards/test.json"));
  folder.write("text/b.tokens.json", "three");
  data.test->shards.clear();
  data.test->tokens = {(folder.path / "text/b-000000.bin").string()};
  launcher::record_cards(data, folder.path / "run");
  CHECK(folder.read("run/cards/test.json") == "three");
  fs::remove(folder.path / "shards/card.json");
  launcher::record_cards(data, folder.path / "run");
  CHECK(!fs::exists(folder.path / "run/cards/train.json"));
}
