// What c10d and Gloo say, made fit for one line of an error.
#pragma once

#include <exception>
#include <string>

namespace scaletrain::dist {

// The first line of error.what(), without a C++ backtrace and without "[source.cc:123] " in front.
std::string foreign_text(const std::exception& error);

}  // namespace scaletrain::dist
