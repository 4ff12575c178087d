#include "launcher/data_cards.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>
#include <iterator>

using namespace scaletrain;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

namespace {

struct CardFolder {
  CardFolder() {
    std::string name = (fs::temp_directory_path() / "scaletrain-cards-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~CardFolder() { fs::remove_all(path); }
  CardFolder(const CardFolder&) = delete;
  CardFolder& operator=(const CardFolder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path path;
};

}  // namespace

TEST_CASE("the cards beside shards and folders are kept with the run, and old ones are not") {
  const CardFolder folder;
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
  fs::remove(folder.path / "shards/card.json");
  launcher::record_cards(data, folder.path / "run");
  CHECK(!fs::exists(folder.path / "run/cards/train.json"));
}
