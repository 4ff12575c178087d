#include "lib/core/printable.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/core/text/json_text.h"

namespace scaletrain::core {

TEST_CASE("text from data cannot change the terminal") {
  struct Row {
    std::string_view text, shown;
  };
  for (const Row& row : {
           Row{"", ""},
           Row{"dog/0001.jpg \\x1b", "dog/0001.jpg \\x1b"},
           Row{"gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80 \xc2\xa0",  // 2, 3, 4 bytes
               "gr\xc3\xbc\xc3\x9f \xe6\x97\xa5 \xf0\x9f\x98\x80 \xc2\xa0"},
           Row{"a\x1b[31mb", "a\\x1b[31mb"},
           Row{{"\0\a\b\r", 4}, "\\x00\\x07\\x08\\x0d"},
           Row{"\x7f", "\\x7f"},                                            // DEL
           Row{"\xc2\x80\xc2\x9b\xc2\x9f", R"(\xc2\x80\xc2\x9b\xc2\x9f)"},  // C1
           Row{"\x9b", "\\x9b"},  // C1 of Latin-1 is no UTF-8
           Row{"caf\xe9", "caf\\xe9"},
           Row{"\xe2\x82", "\\xe2\\x82"},                   // ends too soon
           Row{"\xe2\x82z", "\\xe2\\x82z"},                 // so does this, and z is a character
           Row{"\xc0\x80", "\\xc0\\x80"},                   // an overlong zero
           Row{"\xe0\x80\x8a", "\\xe0\\x80\\x8a"},          // an overlong newline
           Row{"\xed\xa0\x80", "\\xed\\xa0\\x80"},          // a surrogate
           Row{"\xf4\x90\x80\x80", R"(\xf4\x90\x80\x80)"},  // U+110000
           Row{"\xff", "\\xff"},
           Row{"\xe2\x80\xae\xe2\x81\xa6", R"(\xe2\x80\xae\xe2\x81\xa6)"},      // reorder the text
           Row{"\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xe2\x82\xaa",  // do not
               "\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa\xe2\x82\xaa"},
       }) {
    CAPTURE(row.shown);
    CHECK(printable(row.text) == row.shown);
    CHECK(printable(row.shown) == row.shown);
    CHECK(printable_lines(row.text) == row.shown);
  }
}

TEST_CASE("newlines and tabs stay in text of several lines alone") {
  CHECK(printable("a\n\tb\x1b") == "a\\n\\tb\\x1b");
  CHECK(printable_lines("a\n\tb\x1b") == "a\n\tb\\x1b");
}

TEST_CASE("JSON of any bytes can be printed, and is read as what it was made of") {
  const std::string key = "a\x1b\x7f\xc2\x9b\"\xc3\xbc";
  const std::string text = json_text(nlohmann::json{{key, "\xff"}});
  CHECK(text == "{\"a\\u001b\\u007f\\u009b\\\"\xc3\xbc\":\"\xef\xbf\xbd\"}");
  CHECK(nlohmann::json::parse(text).begin().key() == key);
}

}  // namespace scaletrain::core
