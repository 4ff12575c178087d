// The uncommitted changes of a git repository.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

namespace scaletrain::launcher {

// Returns the output of `git diff HEAD` in `folder`, at most 1 MiB; "" outside a repository,
// without the program git, without a change to a tracked file, after 20 s, or once `stop` is true.
// Any thread may call it: it does not matter which thread or loop of this process reaps git.
std::string git_changes(const std::filesystem::path& folder, const std::atomic<bool>& stop);

}  // namespace scaletrain::launcher
