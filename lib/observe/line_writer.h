// Appends lines to a file of a run beside training: metrics.jsonl, journal.jsonl.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "lib/core/descriptor.h"
#include "lib/core/housekeeping.h"

namespace scaletrain::observe {

// Writes each line with one write(2) and O_APPEND, so several processes may append. An incomplete
// last line of a killed run is first ended with a newline. A file that cannot be opened or written
// is a warning and never stops the training; later lines are still tried, since a full disk may be
// emptied. A removed file is warned about and created again with its folder.
class LineWriter {
 public:
  // `first`: JSON fields, each after a comma, that the first object of an empty file gets.
  LineWriter(std::filesystem::path file, std::shared_ptr<core::Housekeeping> housekeeping,
             std::string first = "");

  void append(std::string line);  // without its newline

 private:
  void open_file();
  void keep_file();
  void report(int error);

  std::filesystem::path file_;
  std::shared_ptr<core::Housekeeping> housekeeping_;
  std::string first_;
  core::Descriptor fd_;
  bool torn_ = false;  // the file ends inside a line
};

}  // namespace scaletrain::observe
