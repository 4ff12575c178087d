#include "lib/storage/xml.h"

#include <doctest/doctest.h>

using namespace scaletrain::storage;  // NOLINT(google-build-using-namespace)

TEST_CASE("elements are found by their whole name") {
  const std::string xml =
      "<?xml version='1.0'?>\n<List xmlns=\"a\"><KeyCount>2</KeyCount><Key>a&amp;b</Key><Key/>"
      "<Key>c &lt;d&gt; &quot;&apos;&amp;lt;</Key></List>";
  CHECK(xml_elements(xml, "Key").size() == 2);
  CHECK(xml_text(xml, "Key") == "a&b");
  CHECK(xml_text(xml_elements(xml, "Key")[1], "x").empty());
  CHECK(xml_text("<K>c &lt;d&gt; &quot;&apos;&amp;lt;</K>", "K") == "c <d> \"'&lt;");
  CHECK(xml_text(xml, "KeyCount") == "2");
  CHECK(xml_text(xml, "None").empty());
}

TEST_CASE("what is cut is not found") {
  for (const std::string_view xml : {"", "<", "<Key", "<Key>", "<Key>a</Ke", "</Key>"}) {
    CHECK(xml_elements(xml, "Key").empty());
  }
}
