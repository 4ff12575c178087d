// Shards of an object store by what stands for several of them: "s3://BUCKET/train-*.tar", or their
// folder. Who knows the store says what a folder holds; nothing here speaks to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace scaletrain::recipe {

struct Recipe;

// True if `name` is in a store that can list its objects (s3://, gs://) and is not named as a
// shard: a pattern, a folder, or a shard after all.
bool may_be_remote_group(const std::string& name);

// The names of the objects in a folder of a store, without it; none where there is none.
using ListObjects = std::function<std::vector<std::string>(const std::string& folder)>;

// The shards that a group stands for, hidden ones left out, sorted bytewise: of a pattern, whose
// "*" are in its last part, the objects that fit; of a folder its shards. Any other name stands for
// itself. "" in `mistake`, or why there are none.
std::vector<std::string> remote_shards(const std::string& name, const ListObjects& list,
                                       std::string& mistake);

// Puts the shards of each group, as `shards_of` gives them, in its place in all sets of `recipe`;
// false where there is no group. In a list of several names only those with a "*" or a "/" at the
// end are groups: ten thousand shards are not looked up one by one.
bool replace_remote_groups(
    Recipe& recipe, const std::function<std::vector<std::string>(const std::string&)>& shards_of);

}  // namespace scaletrain::recipe
