// Paths and shard lists as keys. Relative paths are taken from the working directory and stored as
// absolute ones. A shard may be a URL (lib/core/text/url.h), which is not changed.
#pragma once

#include <string>
#include <vector>

#include "lib/recipe/schema/type.h"

namespace scaletrain::recipe {

// Type of a path; "" means none.
TypePtr path(std::string& value);

// Type of a folder or s3://BUCKET/PREFIX, stored without a trailing '/'. "" means none.
TypePtr folder_or_bucket(std::string& value);

// Type of a text or list of texts with braces (lib/recipe/catalog/braces.h), patterns and folders.
// Local patterns and folders are replaced by their shards (lib/recipe/catalog/local_shards.h);
// remote ones are expanded later (lib/recipe/remote_shards.h).
TypePtr shard_list(std::vector<std::string>& value);

// Type of a list of token files; expands braces only.
TypePtr token_list(std::vector<std::string>& value);

// Type of a URL such as "https://host:port".
TypePtr endpoint(std::string& value);
TypePtr region(std::string& value);

// Returns `path` made absolute against the working directory, without "~", "." and "..".
std::string absolute_path(const std::string& path);

}  // namespace scaletrain::recipe
