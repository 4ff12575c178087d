#include "lib/data/set/listed_files.h"

#include <doctest/doctest.h>

#include "lib/core/error.h"
#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("a folder stands for the images below it, and a file for itself") {
  const TemporaryFolder folder;
  folder.write("in/b/2.png", grey_png(2));
  folder.write("in/b/1.PNG", grey_png(1));
  folder.write("in/a.jpg", "jpeg");
  folder.write("in/notes.txt", "");
  folder.write("in/.hidden/3.png", "");
  folder.write("picture", grey_png(9));
  const ListedFiles listed =
      list_files({folder.file("picture"), folder.file("in"), folder.file("none.png")});
  CHECK(listed.files == std::vector<std::string>{folder.file("picture"), folder.file("in/a.jpg"),
                                                 folder.file("in/b/1.PNG"),
                                                 folder.file("in/b/2.png")});
  REQUIRE(listed.unread.size() == 1);
  CHECK(listed.unread[0].path == folder.file("none.png"));
  CHECK(listed.unread[0].reason == "No such file or directory (ENOENT)");

  const auto set = open_files(listed.files);
  CHECK(set->size() == 4);
  CHECK(shard_sizes(*set) == std::vector<std::int64_t>{4});
  const RawSample sample = set->read(0, 2);
  CHECK(sample.image == grey_png(1));
  CHECK(sample.key == folder.file("in/b/1.PNG"));
  CHECK(sample.extension == "png");
  CHECK(sample.label == 0);
  CHECK(set->read(0, 0).extension.empty());
  CHECK(set->image_place(0, sample) == folder.file("in/b/1.PNG"));
  CHECK(set->classes().empty());
}

TEST_CASE("a folder without images is refused") {
  const TemporaryFolder folder;
  folder.write("in/notes.txt", "");
  std::string text = "no error";
  try {
    list_files({folder.file("in")});
  } catch (const scaletrain::core::DataError& error) {
    text = error.what();
  }
  CHECK(text == folder.file("in") +
                    ": has no .jpg, .jpeg, .png, .webp or .rgb8 file, also in its sub-folders\n"
                    "  name images or a folder of images");
}
