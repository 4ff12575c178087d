// Any bytes as an index file: taken only when it is exactly what would be written for its entries.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "lib/core/descriptor.h"
#include "lib/core/text/hash.h"
#include "lib/format/tar/shard_index.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace scaletrain::format;  // NOLINT(google-build-using-namespace)

constexpr ShardVersion kVersion{10240, 1'700'000'000'000'000'000, 0};
constexpr std::size_t kHeaderBytes = 88;

// Makes the header right for what follows it, so that mutations of entries get past it.
void repair_index(std::string& bytes) {
  if (bytes.size() < kHeaderBytes) return;
  const std::uint64_t count = (bytes.size() - kHeaderBytes) / sizeof(IndexEntry);
  const std::string_view text = bytes;
  const std::uint64_t checksum = scaletrain::core::xxh3_64(
      text.substr(kHeaderBytes), scaletrain::core::xxh3_64(text.substr(56, 32)));
  std::memcpy(bytes.data() + 32, &count, sizeof count);
  std::memcpy(bytes.data() + 40, &checksum, sizeof checksum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if ((data[0] & 1U) != 0) repair_index(bytes);
  const scaletrain::core::Descriptor file(::memfd_create("index", MFD_CLOEXEC));
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return 0;
  }
  const auto index = MappedIndex::open(fmt::format("/proc/self/fd/{}", file.get()), kVersion);
  if (!index) return 0;
  if (encode_index(index->entries(), kVersion, index->sha256()) != bytes) {
    fuzz_failed("an index was taken that would not be written so");
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::vector<IndexEntry> entries{{0, 512, 700, 3}, {5, 1536, 1, 0}};
  const std::string sha256 = scaletrain::core::Sha256().update("shard").hex();
  std::vector<std::string> seeds;
  for (const std::string& mode : {std::string(1, '\0'), std::string(1, '\1')}) {
    seeds.push_back(mode + encode_index(entries, kVersion, sha256));
    seeds.push_back(mode + encode_index(entries, kVersion));
    seeds.push_back(mode + encode_index({}, kVersion));
  }
  return seeds;
}
