// Expands patterns and folders of local shards: "train-*.tar", or a folder.
#pragma once

#include <string>
#include <vector>

namespace scaletrain::recipe {

// True if the file name is a shard's: .tar, also compressed.
bool is_shard_name(const std::string& path);

// Returns the shards of a folder (unless it has a shard's name), or the files that match a "*" in
// the last part of `name` if there is no such file, without hidden ones; otherwise `name` itself.
// Sorted bytewise. `mistake` is "", or the reason why there are none.
std::vector<std::string> local_shards(const std::string& name, std::string& mistake);

}  // namespace scaletrain::recipe
