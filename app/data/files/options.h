// Flags that several commands of `scaletrain data` have.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

// --threads N; 0, the default, is one a core that this process may use.
void add_threads_flag(CLI::App& command, int& threads, const std::string& of = "threads that work");
int resolve_threads(int threads);

// --json: print one JSON object instead of text.
void add_json_flag(CLI::App& command, bool& as_json);

// --overwrite of a command that writes one or a few files. Without it, refuse_existing() throws
// core::UsageError if there is a file or object at `path`.
void add_overwrite_flag(CLI::App& command, bool& overwrite);
void refuse_existing(const storage::Storage& storage, const std::string& path, bool overwrite);

// PATH...: shards, patterns with braces, or folders; local or remote.
void add_shards_argument(CLI::App& command, std::vector<std::string>& paths);

// The shards that such arguments mean: a folder stands for every tar in it, plain or compressed,
// and a "*" in the last part for all that fit, sorted bytewise, and each shard is there once; an
// s3:// or gs:// path that has no such name is a folder, or a shard where it is none. Throws
// core::UsageError for a wrong pattern, core::DataError for a missing or empty folder. Shards
// themselves are not opened.
std::vector<std::string> resolve_shards(const storage::Stores& stores,
                                        const std::vector<std::string>& paths);

// Lists the shards of one s3:// or gs:// path (recipe::may_be_remote_group). Throws core::DataError
// if there are none.
std::vector<std::string> shards_of_group(const storage::Stores& stores, const std::string& name);

}  // namespace scaletrain::app
