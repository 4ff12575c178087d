#include "lib/format/tar/tar_groups.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <cstring>

#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

struct Found {
  std::vector<std::string> groups;  // "KEY: EXTENSION ..., PROBLEM ..."
  std::int64_t ignored = 0;
};

Found groups_of(const std::string& members) {
  const std::string tar = members + tar_end(), name = "a.tar";
  Found found;
  found.ignored = for_each_group(
      name, static_cast<std::int64_t>(tar.size()),
      [&](std::int64_t offset, std::span<std::byte> out) {
        if (!out.empty()) std::memcpy(out.data(), tar.data() + offset, out.size());
      },
      [&](const TarGroup& group) {
        std::string text = group.key + ":";
        for (const TarField& field : group.fields) text += " " + field.extension;
        for (const std::string& problem : problems_of(group)) text += ", " + problem;
        found.groups.push_back(text);
        return group.key != "last";
      });
  return found;
}

}  // namespace

TEST_CASE("what is behind the last group that is wanted is not read") {
  const std::string damaged(512, 'x');
  CHECK(groups_of(tar_member("a.cls", "") + tar_member("last.cls", "") + tar_member("b.cls", "") +
                  damaged)
            .groups == std::vector<std::string>{"a: cls, no image", "last: cls, no image"});
}

TEST_CASE("members with one key next to one another are a group, whole or not") {
  const Found found =
      groups_of(tar_member("a.jpg", "") + tar_member("a.CLS", "") + tar_member("b.seg.txt", "") +
                tar_member("README", "") + tar_entry({.name = "b.png", .type = '2'}, "") +
                tar_member("c.png", "") + tar_member("c.webp", "") + tar_member("c.png", "") +
                tar_member("a.cls", ""));
  CHECK(found.groups ==
        std::vector<std::string>{"a: jpg cls", "b: seg.txt, no image, no label",
                                 "c: png webp png, .png occurs twice, two images, no label",
                                 "a: cls, no image"});
  CHECK(found.ignored == 2);  // README and the link
}

TEST_CASE("fields are found by extension") {
  TarGroup group;
  group.fields = {{"cls", {}}, {"jpg", {}}};
  CHECK(group.find("cls") == group.fields.data());
  CHECK(group.image() == &group.fields[1]);
  CHECK(group.find("png") == nullptr);
  group.fields.pop_back();
  CHECK(group.image() == nullptr);
}

TEST_CASE("a tar without samples has no group") { CHECK(groups_of("").groups.empty()); }

TEST_CASE("a hard link is the file that it stands for, and another link is left out") {
  const Found found = groups_of(tar_member("1.png", "p") + tar_member("1.cls", "3") +
                                tar_entry({.name = "2.png", .type = '1', .link = "1.png"}, "") +
                                tar_entry({.name = "2.cls", .type = '1', .link = "none.cls"}, ""));
  CHECK(found.groups == std::vector<std::string>{"1: png cls", "2: png, no label"});
  CHECK(found.ignored == 1);
}
