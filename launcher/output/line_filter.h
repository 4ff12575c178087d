// Appends lines that contain one of some texts to a file shared by several streams (torchrun's
// filtered_stdout.log).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/log_file.h"

namespace scaletrain::launcher {

class LineFilter {
 public:
  LineFilter() = default;  // discards everything
  // Writes every line with one write(2), after `prefix`.
  LineFilter(LogFile file, std::vector<std::string> wanted, std::string prefix)
      : file_(std::move(file)), wanted_(std::move(wanted)), prefix_(std::move(prefix)) {}

  // Takes any piece of the stream; a carriage return ends a line too.
  void take(std::string_view text);
  // Treats an unterminated rest as a line.
  void finish();

 private:
  void end_line();

  LogFile file_;
  std::vector<std::string> wanted_;
  std::string prefix_;
  std::string line_;
};

}  // namespace scaletrain::launcher
