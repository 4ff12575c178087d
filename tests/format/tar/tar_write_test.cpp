#include "lib/format/tar/tar_write.h"

#include <doctest/doctest.h>

#include <cstring>

#include "lib/format/tar/tar.h"
#include "tests/format/archive_support.h"
#include "tests/format/tar/tar_support.h"

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

namespace {

// A tar of the members, as TarWriter writes it.
std::string written(const std::vector<ArchiveMember>& members) {
  std::string tar;
  TarWriter writer([&](std::span<const std::byte> bytes) {
    tar.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  std::int64_t expected = 0;
  for (const ArchiveMember& member : members) {
    writer.add(member.path, member.bytes);
    expected +=
        TarWriter::member_bytes(member.path, static_cast<std::int64_t>(member.bytes.size()));
    CHECK(writer.bytes() == expected);
  }
  writer.finish();
  CHECK(static_cast<std::int64_t>(tar.size()) == expected + 1024);
  return tar;
}

}  // namespace

TEST_CASE("a written tar is read alike by libarchive and by TarReader, whatever the names") {
  std::vector<ArchiveMember> members{{"a.png", "pixels"},
                                     {"empty.cls", ""},
                                     {"full.bin", std::string(1024, 'x')},
                                     {"with space/\xc3\xa4.cls", "1"},
                                     {"large.bin", std::string(3 << 20, 'y')}};
  // Around the limits of the fields: 100 for a name, 155 and 100 for a prefix and a name.
  for (const std::size_t length : {99U, 100U, 101U, 154U, 155U, 156U, 255U, 256U, 257U, 5000U}) {
    members.push_back({std::string(length, 'n'), "no slash"});
    members.push_back(
        {std::string(length / 2, 'p') + "/" + std::string(length - length / 2, 'q'), "one slash"});
    members.push_back({"/" + std::string(length, 'r'), "in front"});
  }
  const std::string tar = written(members);
  CHECK(read_with_archive(tar) == members);

  const std::string name = "a.tar";
  const ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    if (!out.empty()) std::memcpy(out.data(), tar.data() + offset, out.size());
  };
  TarReader reader(name, static_cast<std::int64_t>(tar.size()), read);
  for (const ArchiveMember& member : members) {
    const auto found = reader.next();
    REQUIRE(found);
    CHECK(found->path == member.path);
    CHECK(found->regular);
    CHECK(tar.substr(static_cast<std::size_t>(found->data),
                     static_cast<std::size_t>(found->bytes)) == member.bytes);
  }
  CHECK(!reader.next());
}
