// Local shards by what stands for several of them: "train-*.tar", or their folder.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {

// True if a file of that name is a shard: .tar, or a compressed one.
bool is_shard_name(const std::string& path);

// `name` itself, unless it is a folder that is not named as a shard: then its shards; or no file is
// there and it has "*" in its last part: then the files that fit, hidden ones left out. Sorted
// bytewise. "" in `mistake`, or why there are none.
std::vector<std::string> local_shards(const std::string& name, std::string& mistake);

}  // namespace scaletrain::recipe
