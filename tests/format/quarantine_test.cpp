#include "lib/format/quarantine.h"

#include <doctest/doctest.h>

#include "tests/format/tar/tar_support.h"
#include "tests/temporary_folder.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

std::string refused(const std::string& text) {
  try {
    parse_quarantine(text, "q.json");
  } catch (const scaletrain::core::CheckpointError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a quarantine list is written sorted, each name once, and read back") {
  const Quarantine list({{"b.tar", "k2", "two images"},
                         {"b.tar", "k1", "no label"},
                         {"a.tar", "", "truncated"},
                         {"b.tar", "k1", "seen again"}});
  const std::string text = encode_quarantine(list);
  CHECK(text ==
        "{\n"
        " \"version\": 1,\n"
        " \"shards\": [\n"
        "  {\n"
        "   \"shard\": \"a.tar\",\n"
        "   \"problem\": \"truncated\"\n"
        "  }\n"
        " ],\n"
        " \"samples\": [\n"
        "  {\n"
        "   \"shard\": \"b.tar\",\n"
        "   \"key\": \"k1\",\n"
        "   \"problem\": \"no label\"\n"
        "  },\n"
        "  {\n"
        "   \"shard\": \"b.tar\",\n"
        "   \"key\": \"k2\",\n"
        "   \"problem\": \"two images\"\n"
        "  }\n"
        " ]\n"
        "}\n");
  const Quarantine read = parse_quarantine(text, "q.json");
  CHECK(read.entries() == list.entries());
  CHECK(read.holds_shard("a.tar"));
  CHECK(!read.holds_shard("b.tar"));
  CHECK(read.keys_of("b.tar") == std::vector<std::string>{"k1", "k2"});
  CHECK(read.keys_of("a.tar").empty());
}

TEST_CASE("the list beside shards is found, and none is an empty one") {
  const scaletrain::test::TemporaryFolder folder;
  CHECK(Quarantine::beside(folder.path).entries().empty());
  folder.write(kQuarantineFile, encode_quarantine(Quarantine({{"a.tar", "k", "p"}})));
  CHECK(Quarantine::beside(folder.path).keys_of("a.tar") == std::vector<std::string>{"k"});
}

TEST_CASE("a renewed list holds what is wrong now, and what was not judged") {
  const Quarantine old({{"a.tar", "", "cut"},
                        {"b.tar", "k1", "no label"},
                        {"b.tar", "k2", "no image"},
                        {"c.tar", "k1", "no label"}});
  CHECK(old.renewed({"a.tar", "b.tar"}, {{"b.tar", "k2", "two images"}, {"b.tar", "k3", "cut"}})
            .entries() == std::vector<Quarantined>{{"b.tar", "k2", "two images"},
                                                   {"b.tar", "k3", "cut"},
                                                   {"c.tar", "k1", "no label"}});
  CHECK(old.renewed({}, {}) == old);
  CHECK(old.renewed({"a.tar", "b.tar", "c.tar"}, {}).entries().empty());
}

TEST_CASE("an entry is left out by itself, or with its shard") {
  const Quarantine list({{"a.tar", "", "cut"}, {"b.tar", "k", "no label"}});
  CHECK(list.leaves_out({"a.tar", "", "another problem"}));
  CHECK(list.leaves_out({"a.tar", "any", ""}));
  CHECK(list.leaves_out({"b.tar", "k", ""}));
  CHECK(!list.leaves_out({"b.tar", "k2", ""}));
  CHECK(!list.leaves_out({"b.tar", "", ""}));
  CHECK(!list.leaves_out({"c.tar", "k", ""}));
}

TEST_CASE("a damaged list is refused, never taken for an empty one") {
  CHECK(refused("[]").starts_with("q.json: is not a JSON object"));
  CHECK(refused("{\"version\": 2}") == "q.json: is of version 2\n  this program reads version 1");
  CHECK(refused("{\"version\": 1, \"shards\": []}").starts_with("q.json: /samples: is missing"));
  CHECK(refused("{\"version\": 1, \"shards\": {}, \"samples\": []}") ==
        "q.json: /shards: is not an array\n"
        "  remove the file, then write it again: scaletrain data check --repair");
  CHECK(refused("{\"version\": 1, \"shards\": [], \"samples\": [{\"shard\": \"a\", \"key\": \"\", "
                "\"problem\": \"\"}]}") ==
        "q.json: /samples/0: names nothing\n"
        "  remove the file, then write it again: scaletrain data check --repair");
  CHECK(refused("{\"version\": 1, \"shards\": [{\"shard\": \"a\", \"problem\": \"\", \"x\": 1}], "
                "\"samples\": []}")
            .starts_with("q.json: /shards/0/x: is not a key of this format"));
}
