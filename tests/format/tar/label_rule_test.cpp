#include "lib/format/tar/label_rule.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lib/format/tar/shard_index.h"
#include "tests/format/tar/tar_support.h"

namespace scaletrain::format {
namespace {

std::string shown(const std::optional<FoundLabel>& label) {
  if (!label) return "none";
  return label->number < 0 ? fmt::format("{}", label->list) : std::to_string(label->number);
}

// Labels of the samples that an index of the tar has, or the message.
std::string labels_in(const std::string& tar, const LabelRule& rule) {
  std::string text;
  const std::string message = message_of([&] {
    std::int64_t left_out = 0;
    for (const IndexEntry& entry : index_shard(
             "a.tar", static_cast<std::int64_t>(tar.size()),
             [&](std::int64_t offset, std::span<std::byte> out) {
               std::copy_n(std::as_bytes(std::span(tar)).begin() + offset, out.size(), out.begin());
             },
             {}, 1, rule, &left_out)) {
      text += entry.has_list() ? "list " : fmt::format("{} ", entry.label);
    }
    text += fmt::format("({} left out)", left_out);
  });
  return text.empty() ? message : text;
}

TEST_CASE("a label is a member's text, or a value of a member that is JSON") {
  const LabelRule plain, json{.field = "json", .key = "label", .classes = {"cat", "dog"}};
  CHECK(shown(plain.parse(" 7\n")) == "7");
  CHECK(shown(plain.parse("1 5")) == "[1, 5]");
  CHECK(shown(plain.parse("cat")) == "none");
  CHECK(shown(json.parse(R"({"label": 7, "other": "x"})")) == "7");
  CHECK(shown(json.parse(R"({"label": [1, "cat"]})")) == "[1, 0]");
  CHECK(shown(json.parse(R"({"label": "dog"})")) == "1");
  for (const char* text : {R"({"label": "cow"})", R"({"label": -1})", R"({"label": 1.5})",
                           R"({"label": null})", R"({"lable": 1})", "[7]", "{", "",
                           R"({"label": 2147483648})", R"({"label": {"label": 1}})"}) {
    CHECK(shown(json.parse(text)) == "none");
  }
}

TEST_CASE("the last folder of a key names a class") {
  const LabelRule rule{.field = "folder", .classes = {"cat", "dog"}};
  CHECK(rule.class_of("train/dog/000") == 1);
  CHECK(rule.class_of("cat/000") == 0);
  CHECK_FALSE(rule.class_of("cow/000"));
  CHECK_FALSE(rule.class_of("cat"));
}

TEST_CASE("an index holds the labels of its rule") {
  const std::string tar = tar_member("cat/0.jpg", "i") + tar_member("cat/0.json", R"({"y": 3})") +
                          tar_member("dog/1.jpg", "i") + tar_member("dog/1.json", R"({"y": [1]})") +
                          tar_end();
  CHECK(labels_in(tar, {.field = "json", .key = "y"}) == "3 list (0 left out)");
  CHECK(labels_in(tar, {.field = "folder", .classes = {"cat", "dog"}}) == "0 1 (0 left out)");
  CHECK(labels_in(tar, {.field = "json", .key = "z"}) ==
        "a.tar: cat/0.json: label \"{\"y\": 3}\" has no class in \"z\"\n"
        "  data.label.key names another; a class is a whole number, a name, or a list of them; "
        "classes.json beside the shards, or data.train, names the classes: no name");
  CHECK(labels_in(tar, {.field = "folder", .classes = {"dog"}}) ==
        "a.tar: cat/0: its folder is not a class\n"
        "  with data.label \"folder\" keys are CLASS/NAME; classes.json beside the shards, or "
        "data.train, names the classes: \"dog\"");
  CHECK(labels_in(tar, {}).starts_with("a.tar: cat/0: has no label\n"));
}

TEST_CASE("incomplete samples are left out where the rule says so") {
  const std::string tar = tar_member("a.jpg", "i") + tar_member("b.jpg", "i") +
                          tar_member("b.cls", "1") + tar_member("c.cls", "2") + tar_end();
  CHECK(labels_in(tar, {.skips_incomplete = true}) == "1 (2 left out)");
  CHECK(labels_in(tar, {}).starts_with("a.tar: a: has no label\n"));
}

TEST_CASE("an index of another rule is another index") {
  CHECK(LabelRule{}.digest() == 0);
  const std::vector<LabelRule> rules{{.field = "json"},
                                     {.field = "json", .key = "y"},
                                     {.field = "folder"},
                                     {.field = "folder", .classes = {"a", "b"}},
                                     {.field = "folder", .classes = {"ab"}},
                                     {.skips_incomplete = true}};
  for (std::size_t i = 0; i < rules.size(); ++i) {
    CHECK(rules[i].digest() != 0);
    for (std::size_t j = 0; j < i; ++j) CHECK(rules[i].digest() != rules[j].digest());
  }
  CHECK(LabelRule{.classes = {"a"}}.digest() == 0);
}

}  // namespace
}  // namespace scaletrain::format
