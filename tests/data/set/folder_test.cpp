#include "lib/data/set/folder.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kLayout = "\n  a folder source holds one folder of images for each class";

}  // namespace

TEST_CASE("classes and files are numbered by their names, bytewise sorted") {
  const TemporaryFolder folder;
  folder.write("dog/b.PNG", grey_png(2));
  folder.write("dog/a.x.jpg", "jpeg");
  folder.write("dog/notes.txt", "");
  folder.write("dog/.hidden.png", "");
  folder.write("Cat/1.jpeg", "cat");
  folder.write(".git/x", "");
  folder.write("classes.json", "ignored");
  const auto dataset = open_folder(folder.path.string());
  CHECK(dataset->classes() == std::vector<std::string>{"Cat", "dog"});
  CHECK(shard_sizes(*dataset) == std::vector<std::int64_t>{1, 2});
  CHECK(dataset->size() == 3);
  const RawSample sample = dataset->read(1, 1);
  CHECK(sample.image == grey_png(2));
  CHECK(sample.label == 1);
  CHECK(sample.shard == "dog");
  CHECK(sample.key == "b.PNG");
  CHECK(sample.extension == "png");
  CHECK(dataset->read(1, 0).key == "a.x.jpg");
  CHECK(dataset->image_place(1, sample) == folder.file("dog/b.PNG"));
  CHECK(dataset->label_place(1, sample) == folder.file("dog"));
}

TEST_CASE("a folder without classes or images, or with folders too deep, is reported") {
  const TemporaryFolder folder;
  const std::string path = folder.path.string();
  const auto error_of = [&] { return message_of([&] { open_folder(path); }); };
  CHECK(error_of() == path + ": has no class folder" + kLayout);
  folder.write("cat/readme.txt", "");
  CHECK(error_of() == path + "/cat: has no .jpg, .jpeg, .png, .webp or .rgb8 file" + kLayout +
                          "; scaletrain data pack makes PNGs of .bmp, .gif, .tif and .tiff");
  folder.write("cat/deep/x.png", "");
  CHECK(error_of() == path + "/cat/deep: a folder inside a class's folder" + kLayout);
  folder.write("both/train/cat/x.png", "");
  CHECK(message_of([&] { open_folder(path + "/both"); }) ==
        path + "/both/train/cat: a folder inside a class's folder\n  name " + path +
            "/both/train itself, where its folders are the classes");
  CHECK(message_of([&] { open_folder(path + "/absent"); }) ==
        path + "/absent: No such file or directory (ENOENT)\n  check the path");
}

TEST_CASE("a class folder whose name is not UTF-8 is refused: names are kept as JSON") {
  const TemporaryFolder folder;
  folder.write("z/1.png", "");
  folder.write("ch\xe9vre/1.png", "");
  CHECK(message_of([&] { open_folder(folder.path.string()); }) ==
        folder.path.string() +
            "/ch\\xe9vre: the name of a class folder is not UTF-8\n"
            "  rename the folder: it is the name of a class");
}

TEST_CASE("files that are no images are counted by their extension, as pack counts them") {
  const TemporaryFolder folder;
  for (const char* name : {"cat/1.webp", "cat/2.rgb8", "cat/3.JPEG", "cat/4.bmp", "cat/5.BMP",
                           "cat/notes", "classes.json", ".hidden", "cat/.hidden.bmp"}) {
    folder.write(name, "x");
  }
  LeftAlone left_alone{{".gif", 1}};
  CHECK(open_folder(folder.path.string(), &left_alone)->size() == 3);
  CHECK(left_alone == LeftAlone{{"", 1}, {".bmp", 2}, {".gif", 1}, {".json", 1}});
  CHECK(shown_files(left_alone) == "1 without extension, 2 .bmp, 1 .gif, 1 .json");
}
