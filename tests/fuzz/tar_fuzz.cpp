// Any bytes as a tar: nothing but core::DataError, no memory beyond the input's; and what our
// reader takes to its end, libarchive reads alike.
#include <algorithm>
#include <cstring>

#include "lib/format/tar/tar_groups.h"
#include "lib/format/tar/tar_samples.h"
#include "tests/format/archive_support.h"
#include "tests/format/tar/tar_support.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

// Gives every block that looks like a header its checksum, or mutations would end there.
void repair_checksums(std::string& tar) {
  for (std::size_t at = 0; at + 512 <= tar.size(); at += 512) {
    if (tar.compare(at + 257, 5, "ustar") != 0) continue;
    tar.replace(at + 148, 8, "        ");
    unsigned sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(tar[i]);
    tar.replace(at + 148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  }
}

struct Read {
  std::vector<ArchiveMember> members;
  bool whole = false;     // up to the end marker, without an error
  bool extended = false;  // names and sizes may come from elsewhere than the header
};

Read read_ours(const std::string& tar, const ReadAt& read) {
  const std::string name = "a.tar";
  Read result;
  try {
    TarReader reader(name, static_cast<std::int64_t>(tar.size()), read);
    while (const auto member = reader.next()) {
      result.extended = result.extended || member->data - member->begin != 512;
      if (!member->regular) continue;
      result.members.push_back({member->path, tar.substr(static_cast<std::size_t>(member->data),
                                                         static_cast<std::size_t>(member->bytes))});
    }
    result.whole = true;
  } catch (const scaletrain::core::DataError&) {
  }
  return result;
}

// What libarchive reads beside ours (types that it takes for files) is passed over.
void compare_with_archive(const std::string& tar, const Read& ours) {
  bool failed = false;
  const std::vector<ArchiveMember> theirs = read_with_archive(tar, &failed);
  if (failed) return;  // it is stricter here and there: numbers, names
  auto next = theirs.begin();
  for (const ArchiveMember& member : ours.members) {
    next = std::find_if(next, theirs.end(), [&](const ArchiveMember& other) {
      return other.bytes == member.bytes && (ours.extended || other.path == member.path);
    });
    if (next == theirs.end()) {
      fuzz_failed(fmt::format("{} with {} bytes is not what libarchive reads",
                              shown_name(member.path), member.bytes.size()));
    }
    ++next;
  }
}

template <class Body>
void tolerate_data_errors(const Body& body) {
  try {
    body();
  } catch (const scaletrain::core::DataError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string tar(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1U) != 0) repair_checksums(tar);
  const std::string name = "a.tar";
  const auto bytes = static_cast<std::int64_t>(tar.size());
  const ReadAt read = [&](std::int64_t offset, std::span<std::byte> out) {
    if (offset < 0 || offset + static_cast<std::int64_t>(out.size()) > bytes) {
      fuzz_failed("a read outside the file");
    }
    if (!out.empty()) std::memcpy(out.data(), tar.data() + offset, out.size());
  };
  const Read ours = read_ours(tar, read);
  if (ours.whole) compare_with_archive(tar, ours);
  tolerate_data_errors([&] { for_each_sample(name, bytes, read, [](const TarSample&) {}); });
  tolerate_data_errors(
      [&] { for_each_group(name, bytes, read, [](const TarGroup&) { return true; }); });
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string pair = tar_member("1.jpg", std::string(600, 'j')) + tar_member("1.cls", "3");
  const std::string path_record = "30 path=folder/long name.jpg\n";
  const std::string size_record = "10 size=3\n";
  std::vector<std::string> tars{
      pair + tar_end(),
      pair + tar_member("d/2.PNG", "p") + tar_member("d/2.cls", "4") + tar_member("d/2.txt", "") +
          tar_end() + std::string(8192, '\0'),
      tar_entry({.name = "pax", .type = 'x'}, path_record) + tar_member("x", "abc") + tar_end(),
      tar_entry({.name = "pax", .type = 'x'}, size_record) + tar_member("x.cls", "abc") + tar_end(),
      tar_entry({.name = "long", .type = 'L'}, std::string(300, 'n') + ".jpg") +
          tar_member("x", "abc") + tar_end(),
      tar_entry({.name = "all", .type = 'g'}, "11 comment=a\n") + pair + tar_end(),
      tar_entry({.name = "link.jpg", .type = '2'}, "") +
          tar_entry({.name = "d/", .type = '5'}, "") +
          tar_entry({.name = "fifo", .type = '6'}, "") + pair + tar_end(),
      tar_entry({.name = "base", .size = std::string("\x80\0\0\0\0\0\0\0\0\0\0\x03", 12)}, "abc") +
          tar_end(),
      tar_entry({.name = "n.jpg", .magic = std::string("ustar  \0", 8)}, "gnu") + tar_end(),
      tar_entry({.name = "n.jpg", .magic = "ustar  ", .prefix = std::string(41, '\0') + "1"},
                "gnu") +
          tar_end(),
      tar_entry({.name = "n.jpg", .prefix = "some/folder"}, "prefix") + tar_end(),
      tar_entry({.name = "n.jpg", .magic = "ustar(00", .prefix = "folder"}, "magic") + tar_end(),
      tar_end()};
  std::vector<std::string> seeds;
  for (const std::string& tar : tars) {
    seeds.push_back(std::string(1, '\0') + tar);
    seeds.push_back("\x01" + tar);
  }
  return seeds;
}
