#include "app/data/copy_samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include <string>
#include <unordered_set>

#include "app/data/in_order.h"
#include "lib/core/hash.h"
#include "lib/observe/work_progress.h"

namespace scaletrain::app {

void copy_samples(const std::vector<ShardFile>& shards, const std::vector<FoundSample>& samples,
                  const std::vector<std::size_t>& which, int threads,
                  const std::function<ShardWriter&(std::size_t)>& writer_of) {
  const auto count = static_cast<std::int64_t>(which.size());
  observe::WorkProgress progress(STDERR_FILENO, "copying", count);
  std::unordered_set<std::uint64_t> keys;  // a shard must not hold one twice
  in_order<std::vector<std::string>>(
      count, threads,
      [&](std::int64_t i, int) {
        const FoundSample& sample = samples[which[static_cast<std::size_t>(i)]];
        std::vector<std::string> fields;
        for (const format::TarField& field : sample.group.fields) {
          fields.push_back(shards[sample.shard].read(field.member));
        }
        return fields;
      },
      [&](std::int64_t i, const std::vector<std::string>& contents) {
        const std::size_t number = which[static_cast<std::size_t>(i)];
        const FoundSample& sample = samples[number];
        std::vector<WrittenField> fields;
        for (std::size_t k = 0; k < contents.size(); ++k) {
          fields.push_back({sample.group.fields[k].extension, contents[k]});
        }
        std::string key = sample.group.key;
        for (int next = 2; !keys.insert(core::xxh3_64(key)).second; ++next) {
          key = fmt::format("{}-{}", sample.group.key, next);
        }
        writer_of(number).add(key, fields);
        progress.add(1);
      });
}

ContentHash content_hash(std::string_view bytes) {
  constexpr std::uint64_t kOtherSeed = 0x9e3779b97f4a7c15;
  return {core::xxh3_64(bytes), core::xxh3_64(bytes, kOtherSeed)};
}

std::vector<ContentHash> content_hashes(const std::vector<ShardFile>& shards,
                                        const std::vector<FoundSample>& samples, int threads) {
  std::vector<ContentHash> hashes(samples.size());
  observe::WorkProgress progress(STDERR_FILENO, "hashing",
                                 static_cast<std::int64_t>(samples.size()));
  in_order<ContentHash>(
      static_cast<std::int64_t>(samples.size()), threads,
      [&](std::int64_t i, int) {
        const FoundSample& sample = samples[static_cast<std::size_t>(i)];
        return content_hash(shards[sample.shard].read(sample.group.image()->member));
      },
      [&](std::int64_t i, ContentHash hash) {
        hashes[static_cast<std::size_t>(i)] = hash;
        progress.add(1);
      });
  return hashes;
}

}  // namespace scaletrain::app
