// Tracks if the next text on standard error begins a line: a report that follows an unfinished line
// of a worker begins on a new one. Text of this process is known; text of others can be asked of a
// file, brought to a known place on a terminal, and only be assumed of a pipe.
#pragma once

#include <string>

namespace scaletrain::core {

// This process passed a text on to standard error that ended with `last`.
void note_error_stream(char last);
// A child that shares standard error with this process may have written there.
void suspect_error_stream();

// Variant for a worker that draws a progress bar there: on a terminal alone, elsewhere its lines
// are whole.
void leave_bar_of_terminal();

// Returns what begins a new line for the next text; "" where it stands there as far as one knows.
// The caller writes it: the next call returns "" until somebody else has written.
std::string to_line_start();

}  // namespace scaletrain::core
