#include "lib/core/text/markup.h"

#include <doctest/doctest.h>

#include <string>

namespace scaletrain::core {

TEST_CASE("bytes become base64 as RFC 4648 has it") {
  CHECK(base64("").empty());
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64(std::string("\xff\x00\xfb", 3)) == "/wD7");
}

TEST_CASE("a name is no markup and has no control characters") {
  CHECK(escape_html(R"(<img src="x">&)") == "&lt;img src=&quot;x&quot;&gt;&amp;");
  CHECK(escape_html("a\nb\x1b") == "a?b?");
  CHECK(escape_html("\xc3\xa9") == "\xc3\xa9");
}

}  // namespace scaletrain::core
