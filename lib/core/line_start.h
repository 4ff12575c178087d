// Tracks whether standard error is at the beginning of a line, so that a report after an unfinished
// line of a worker starts on a new line. Text of this process is tracked. For text of other
// processes the last byte of a file is read, a terminal's cursor is moved to a known place, and for
// a pipe an assumption is made.
#pragma once

#include <string>

namespace scaletrain::core {

// This process passed a text on to standard error that ended with `last`.
void note_error_stream(char last);
// A child that shares standard error with this process may have written there.
void suspect_error_stream();

// Like suspect_error_stream(), for a worker that draws a progress bar on standard error; has an
// effect on a terminal only, since elsewhere its lines are complete.
void leave_bar_of_terminal();

// Returns "\n" if the next text would otherwise continue an unfinished line, "" if not as far as is
// known. The caller writes it: the next call returns "" until somebody else has written.
std::string to_line_start();

}  // namespace scaletrain::core
