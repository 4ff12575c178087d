// Merges the traces of a job's ranks into one file: the process of an event is its rank.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <vector>

namespace scaletrain::observe {

// Writes all events of `files` to `to`. Their times count from the first file's base, processes are
// ranks named "rank N", and flow events keep to their rank. A file without "distributedInfo" has
// its place in `files` as rank. Reads each file event by event. Throws core::UsageError if two
// files have the same rank, and the errors of read_trace().
void merge_traces(const std::vector<std::filesystem::path>& files, std::ostream& to);

}  // namespace scaletrain::observe
