#include "lib/data/set/folder_files.h"

#include <doctest/doctest.h>

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("an extension is what follows the last dot, lower-case") {
  CHECK(file_extension("a.x.JPG") == ".jpg");
  CHECK(file_extension("notes").empty());
  CHECK(file_extension("a.") == ".");
}

TEST_CASE("images are recognized by their extension") {
  for (const char* name : {"a.jpg", "a.JPEG", "a.png", "a.WebP", "a.rgb8"}) {
    CHECK(is_image_file(name));
  }
  for (const char* name : {"a.bmp", "a.jpg.txt", "jpg", "a.", ""}) CHECK(!is_image_file(name));
}

TEST_CASE("files that are left alone are shown by their extension, escaped") {
  CHECK(shown_files({}).empty());
  CHECK(shown_files({{"", 1}, {".bmp", 3}, {".\n", 2}}) == "1 without extension, 2 .\\n, 3 .bmp");
}
