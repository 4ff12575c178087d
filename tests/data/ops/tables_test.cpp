#include "lib/data/ops/tables.h"

#include <doctest/doctest.h>

#include "tests/data/image_support.h"

// Equality with Pillow over pictures is in tests/data/augment_test.py.

using namespace scaletrain::data;  // NOLINT(google-build-using-namespace)

TEST_CASE("tables hold what their names say") {
  CHECK(blend_table(0.5, 0)[201] == 100);
  CHECK(blend_table(2.0, 100)[90] == 80);
  CHECK(blend_table(2.0, 100)[40] == 0);
  CHECK(blend_table(2.0, 100)[200] == 255);
  CHECK(solarize_table(128)[127] == 127);
  CHECK(solarize_table(128)[128] == 127);
  CHECK(solarize_add_table(110, 128)[127] == 237);
  CHECK(solarize_add_table(110, 128)[128] == 128);
  CHECK(posterize_table(2)[200] == 192);
  CHECK(posterize_table(0)[200] == 0);
  CHECK(posterize_table(8)[201] == 201);
  CHECK(invert_table()[3] == 252);
}

TEST_CASE("contrast is stretched and equalised channel by channel") {
  // Red 50 and 101, green all 7, blue 0 and 255.
  const Image image = make_image(20, 20, [](auto x, auto, auto c) {
    return c == 0 ? (x < 10 ? 50 : 101) : c == 1 ? 7 : (x < 10 ? 0 : 255);
  });
  const ChannelTables stretched = autocontrast_tables(image);
  CHECK(stretched[0][50] == 0);
  CHECK(stretched[0][75] == 125);  // 25 * 255 / 51
  CHECK(stretched[0][101] == 255);
  CHECK(stretched[1][7] == 7);
  CHECK(stretched[2][9] == 9);
  // 200 of 400 values below the last: a step of 200 / 255 = 0 leaves all as it is.
  CHECK(equalize_tables(image)[0][50] == 50);
}

TEST_CASE("tables are applied to every channel or to their own") {
  Image image = make_image(3, 1, [](auto x, auto, auto c) { return 10 * x + c; });
  apply_table(invert_table(), image);
  CHECK(image.row(0)[5] == 255 - 12);
  ChannelTables tables{invert_table(), blend_table(1, 0), blend_table(0, 0)};
  apply_tables(tables, image);
  CHECK(image.row(0)[3] == 10);
  CHECK(image.row(0)[4] == 255 - 11);
  CHECK(image.row(0)[5] == 0);
}
