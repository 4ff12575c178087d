#include "app/data/files/copy_samples.h"

#include <string>
#include <vector>

#include "app/data/files/unique_keys.h"

namespace scaletrain::app {

void copy_samples(const ShardSet& set, int threads,
                  const std::function<ShardWriter*(std::uint32_t)>& writer_of) {
  using Contents = std::vector<std::string>;  // one per field
  UniqueKeys keys;                            // a shard must not hold one twice
  for_each_sample<Contents>(
      set, "copying shards", threads,
      [&](const ShardFile& shard, const FoundSample& sample, int) {
        Contents contents;
        if (writer_of(sample.number) == nullptr) return contents;
        contents.reserve(sample.group.fields.size());
        for (const format::TarField& field : sample.group.fields) {
          contents.push_back(shard.read(field.member));
        }
        return contents;
      },
      [&](const FoundSample& sample, const Contents& contents) {
        ShardWriter* const writer = writer_of(sample.number);
        if (writer == nullptr) return;
        std::vector<WrittenField> fields;
        fields.reserve(contents.size());
        for (std::size_t i = 0; i < contents.size(); ++i) {
          fields.push_back({sample.group.fields[i].extension, contents[i]});
        }
        writer->add(keys.take(sample.group.key), fields);
      });
}

}  // namespace scaletrain::app
