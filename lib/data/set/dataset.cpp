#include "lib/data/set/dataset.h"

#include <utility>

#include "lib/core/error.h"
#include "lib/core/text/hash.h"

namespace scaletrain::data {
namespace {

// Appends eight bytes, least significant first on any machine.
void append_number(std::string& text, std::int64_t number) {
  for (int shift = 0; shift < 64; shift += 8) {
    text += static_cast<char>(static_cast<std::uint64_t>(number) >> shift & 0xff);
  }
}

}  // namespace

std::vector<std::int64_t> Dataset::known_sizes() const { return shard_sizes(*this); }

RawSample Dataset::read(std::int64_t shard, std::int64_t sample) const {
  RawSample raw;
  read_into(shard, sample, raw);
  return raw;
}

// JSON readers represent 52 bits exactly.
std::int64_t digest_number(std::string_view text) {
  return static_cast<std::int64_t>(core::xxh3_64(text) >> 12);
}

std::vector<std::int64_t> shard_sizes(const Dataset& dataset) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < dataset.shard_count(); ++i) sizes.push_back(dataset.shard_size(i));
  return sizes;
}

std::uint64_t sample_digest(std::int64_t epoch, std::int64_t position, const RawSample& sample) {
  std::string text;
  append_number(text, epoch);
  append_number(text, position);
  text += sample.shard;
  text += '\0';  // separator: neither file names nor keys contain a NUL
  text += sample.key;
  return core::xxh3_64(text);
}

}  // namespace scaletrain::data
