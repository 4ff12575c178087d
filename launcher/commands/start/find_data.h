// Recognizes training data by its files.
#pragma once

#include <string>

#include "launcher/commands/start/found_data.h"

namespace scaletrain::launcher {

// Recognizes `given`: a folder, shards (a tar, a pattern, braces), a list, text, token files, or a
// set of another format. Throws core::UsageError for anything else, core::DataError for damaged
// files.
FoundData find_data(const std::string& given);

}  // namespace scaletrain::launcher
