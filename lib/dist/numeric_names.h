// Disables reverse DNS: c10d's store looks up the name of each peer's address, only to log it. Two
// look-ups per connection are free with /etc/hosts and take seconds with a slow resolver.
#pragma once

namespace scaletrain::dist {

// numeric_names.cpp defines getnameinfo(3), which LibTorch calls instead of the C library's; it
// returns the numeric address. This function only forces the file to be linked into the program.
void use_numeric_names();

}  // namespace scaletrain::dist
