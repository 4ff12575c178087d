// Shortens error texts of c10d and Gloo to fit into one line.
#pragma once

#include <exception>
#include <string>

namespace scaletrain::dist {

// The first line of error.what(), without a C++ backtrace and without "[source.cc:123] " in front.
std::string foreign_text(const std::exception& error);

}  // namespace scaletrain::dist
