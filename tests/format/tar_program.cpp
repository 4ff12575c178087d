// What the benchmarks of shards run: our indexing, and libarchive.
//   tar_program index THREADS SHARD         seconds to index the shard, in memory
//   tar_program libarchive BLOCK SHARD...   seconds to read all samples, BLOCK bytes at a time
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/format/byte_reader.h"
#include "lib/format/tar/shard_index.h"

using namespace scaletrain;  // NOLINT(google-build-using-namespace)

namespace {

struct Count {
  std::int64_t samples = 0, bytes = 0;
  std::uint64_t touched = 0;  // of the first and last byte of each field: it was really read
};

void touch(Count& count, const char* bytes, std::size_t size) {
  count.bytes += static_cast<std::int64_t>(size);
  if (size == 0) return;
  count.touched +=
      static_cast<unsigned char>(bytes[0]) + static_cast<unsigned char>(bytes[size - 1]);
}

// As a loader on libarchive would: names split at the first dot, contents in one piece.
void read_libarchive(const std::string& path, std::size_t block, Count& count) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_format_tar(reader.get());
  if (archive_read_open_filename(reader.get(), path.c_str(), block) != ARCHIVE_OK) {
    throw std::runtime_error(archive_error_string(reader.get()));
  }
  archive_entry* entry = nullptr;
  std::string key, bytes;
  while (archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK) {
    const std::string name = archive_entry_pathname(entry);
    const std::string its_key = name.substr(0, name.find('.', name.rfind('/') + 1));
    if (its_key != key) {
      key = its_key;
      ++count.samples;
    }
    bytes.resize(static_cast<std::size_t>(archive_entry_size(entry)));
    if (archive_read_data(reader.get(), bytes.data(), bytes.size()) !=
        static_cast<la_ssize_t>(bytes.size())) {
      throw std::runtime_error("a short read");
    }
    touch(count, bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
    const std::string& command = arguments.at(0);
    const core::SteadyTime start = core::now();
    if (command == "index") {
      const format::ByteReader file(arguments.at(2));
      const auto entries = format::index_shard(
          arguments[2], file.bytes(),
          [&](std::int64_t offset, std::span<std::byte> out) { file.read(offset, out); }, {},
          std::stoi(arguments[1]));
      fmt::print("{{\"samples\": {}, \"seconds\": {}}}\n", entries.size(),
                 core::seconds_since(start));
      return 0;
    }
    Count count;
    for (std::size_t i = 2; i < arguments.size(); ++i) {
      read_libarchive(arguments[i], std::stoul(arguments[1]), count);
    }
    fmt::print("{{\"samples\": {}, \"bytes\": {}, \"touched\": {}, \"seconds\": {}}}\n",
               count.samples, count.bytes, count.touched, core::seconds_since(start));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", core::describe(error));
    return 1;
  }
}
