// Expands patterns and folders of shards in an object store: "s3://BUCKET/train-*.tar", or a
// folder. The caller lists the objects; nothing here accesses the store.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace scaletrain::recipe {

struct Recipe;

// True if `name` is in a store that can list objects (s3://, gs://) and does not have a shard's
// name: a pattern, a folder, or an unusually named shard.
bool may_be_remote_group(const std::string& name);

// Lists the names of the objects in a folder of a store, without the folder; {} if there are none.
using ListObjects = std::function<std::vector<std::string>(const std::string& folder)>;

// Returns the shards of a group, without hidden ones, sorted bytewise: for a pattern, with "*" in
// its last part, the matching objects; for a folder its shards; otherwise `name` itself. `mistake`
// is "", or the reason why there are none.
std::vector<std::string> remote_shards(const std::string& name, const ListObjects& list,
                                       std::string& mistake);

// Replaces each group in all sets of `recipe` by its shards from `shards_of`; returns false if
// there is no group. In a list of several names only those with a "*" or a "/" at the end are
// groups, so that ten thousand shards are not looked up one by one.
bool replace_remote_groups(
    Recipe& recipe, const std::function<std::vector<std::string>(const std::string&)>& shards_of);

}  // namespace scaletrain::recipe
