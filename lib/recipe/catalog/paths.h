// Paths and shard lists as keys: relative to the working directory when read, absolute afterwards.
// A shard may be a URL (lib/core/text/url.h), which stays as it is.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {

// "" stands for none.
TypePtr path(std::string& value);

// A folder, or s3://BUCKET/PREFIX, without a '/' at its end. "" stands for none.
TypePtr folder_or_bucket(std::string& value);

// One text or a list of texts, with braces (lib/recipe/catalog/braces.h), and with patterns and
// folders: of local shards these are replaced (lib/recipe/catalog/local_shards.h), of remote ones
// they stay (lib/recipe/remote_shards.h).
TypePtr shard_list(std::vector<std::string>& value);

// Expands braces only.
TypePtr token_list(std::vector<std::string>& value);

// "https://host:port"
TypePtr endpoint(std::string& value);
TypePtr region(std::string& value);

// `path` against the working directory, without "~", "." and "..".
std::string absolute_path(const std::string& path);

}  // namespace scaletrain::recipe
