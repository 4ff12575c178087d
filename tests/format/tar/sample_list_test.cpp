#include "lib/format/tar/sample_list.h"

#include <doctest/doctest.h>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

using Samples = std::vector<ListedSample>;

TEST_CASE("a CSV list is read as RFC 4180 has it") {
  CHECK(parse_csv_list("path,label\na.jpg,cat\nb.jpg,dog", "l.csv") ==
        Samples{{"a.jpg", "cat", 2}, {"b.jpg", "dog", 3}});
  CHECK(parse_csv_list("\xef\xbb\xbfx,\"label\",path\r\n\"1\n2\",\"c, \"\"at\"\"\",a.jpg\r\n\r\n"
                       ",d,b\r\n",
                       "l.csv") == Samples{{"a.jpg", "c, \"at\"", 2}, {"b", "d", 5}});
  CHECK(parse_csv_list("path,label\n", "l.csv").empty());
  CHECK(parse_csv_list("path,label\ra.jpg,cat\r\rb.jpg,dog\r", "l.csv") ==
        Samples{{"a.jpg", "cat", 2}, {"b.jpg", "dog", 4}});
}

TEST_CASE("a CSV list that is damaged is refused with its line") {
  const auto error = [](std::string_view text) {
    return message_of([&] { parse_csv_list(text, "l.csv"); });
  };
  CHECK(error("") == "l.csv: is empty\n  the first line names path,label");
  CHECK(error("a,b\n") ==
        "l.csv:1: no column \"path\"\n  the first line names the columns: path,label");
  CHECK(error("path,label\na\n") ==
        "l.csv:2: 1 columns where the first line has 2\n"
        "  put a field that holds a comma in quotes");
  CHECK(error("path,label\na,1\n\"b,1\n\n") == "l.csv:3: a quote that does not end\n  close it");
  CHECK(error("path,label\n\"a\" ,1\n") ==
        "l.csv:2: text after a closing quote\n  write \"\" for a quote in quotes");
  CHECK(error("path,label\n,1\n") == "l.csv:2: the path is empty\n  name a file");
  CHECK(error("path,label\na,\n") ==
        "l.csv:2: the label is empty\n  a label is a class number or name");
  CHECK(error(std::string_view("path,label\na\0b,1\n", 17)) ==
        "l.csv:2: a NUL character\n  leave it out");
}

TEST_CASE("a JSON list has one object a line") {
  CHECK(parse_jsonl_list("{\"path\": \"a\", \"label\": 3}\n\n"
                         "{\"label\": \"cat\", \"path\": \"b\", \"more\": [1]}",
                         "l") == Samples{{"a", "3", 1}, {"b", "cat", 3}});
  CHECK(parse_jsonl_list(R"({"path": "a", "label": [3, "cat"]})", "l") ==
        Samples{{"a", "", 1, {"3", "cat"}, true}});
  CHECK(parse_jsonl_list(R"({"path": "a", "label": []})", "l") == Samples{{"a", "", 1, {}, true}});
  const auto error = [](std::string_view text) {
    return message_of([&] { parse_jsonl_list(text, "l"); });
  };
  const std::string remedy = "\n  write {\"path\": \"a.jpg\", \"label\": 3}";
  CHECK(error("[]") == "l:1: is not a JSON object" + remedy);
  CHECK(error("{\"path\": \"a\"}") == "l:1: no path and label" + remedy);
  CHECK(error("{\"path\": 1, \"label\": 1}") == "l:1: no path and label" + remedy);
  CHECK(error("{\"path\": \"a\", \"label\": -1}") ==
        "l:1: the label is neither text nor a whole number from 0" + remedy);
  CHECK(error(R"({"path": "a", "label": [1, [2]]})") ==
        "l:1: the label is neither text nor a whole number from 0" + remedy);
  CHECK(error(R"({"path": "a", "label": [1, ""]})") ==
        "l:1: the label is empty\n  a label is a class number or name");
  CHECK(error("\n{\"path\": \"a\", \"path\": \"b\", \"label\": 1}") ==
        "l:2: has the key \"path\" twice" + remedy);
}
