// Pairs of tiny runs that differ in one key of the recipe: what a run leaves, without what the
// clock says, as one text to compare.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace scaletrain::testing {

using Changes = std::vector<std::string>;  // as --set takes them

class Pairs {
 public:
  Pairs();  // writes pictures with a pattern, two shards to learn from and one to validate; tokens

  // What is left of a run with these changes of a recipe for pictures, or for tokens: the lines of
  // metrics.jsonl, the checkpoints and the weights of the last one. "error ..." where it failed.
  std::string left_by(const Changes& changes, bool tokens = false);

  // The same of a run for pictures whose folder stays, as path(name).
  void keep_run(const std::string& name, const Changes& changes);

  std::string path(const std::string& name) const { return folder_.file(name); }

 private:
  std::string run_in(const std::filesystem::path& output, Changes changes, bool tokens) const;

  test::TemporaryFolder folder_;
  std::map<Changes, std::string> known_[2];  // each run once
  int runs_ = 0;
};

}  // namespace scaletrain::testing
