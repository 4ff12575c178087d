// Flags shared by several commands of `scaletrain data`.
#pragma once

#include <string>
#include <vector>

#include "lib/core/text/cli_app.h"
#include "lib/storage/stores.h"

namespace scaletrain::app {

// --threads N; 0, the default, is one for each usable core.
void add_threads_flag(CLI::App& command, int& threads, const std::string& of = "number of threads");
int resolve_threads(int threads);

// --json: print one JSON object instead of text.
void add_json_flag(CLI::App& command, bool& as_json);

// --overwrite of a command that writes one or a few files. Without it, refuse_existing() throws
// core::UsageError if there is a file or object at `path`.
void add_overwrite_flag(CLI::App& command, bool& overwrite);
void refuse_existing(const storage::Storage& storage, const std::string& path, bool overwrite);

// PATH...: shards, patterns with braces, or folders; local or remote.
void add_shards_argument(CLI::App& command, std::vector<std::string>& paths);

// Returns the shards of such arguments, without opening them: a folder stands for every tar in it,
// plain or compressed, and a "*" in the last part for all matches, sorted bytewise without
// repetitions; an s3:// or gs:// path without a tar's name is a folder, or a shard if there is no
// such folder. Throws core::UsageError for an invalid pattern, core::DataError for a missing or
// empty folder.
std::vector<std::string> resolve_shards(const storage::Stores& stores,
                                        const std::vector<std::string>& paths);

// Lists the shards of one s3:// or gs:// path (recipe::may_be_remote_group). Throws core::DataError
// if there are none.
std::vector<std::string> shards_of_group(const storage::Stores& stores, const std::string& name);

}  // namespace scaletrain::app
