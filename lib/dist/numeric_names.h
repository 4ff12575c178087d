// No reverse DNS: c10d's store asks for the name of each peer's address, only to log it. Two
// look-ups a connection cost nothing with /etc/hosts and seconds with a slow resolver.
#pragma once

namespace scaletrain::dist {

// numeric_names.cpp defines getnameinfo(3), which LibTorch then calls instead of the C library's;
// it answers with the address in digits. This function does nothing but bring that file into a
// program.
void use_numeric_names();

}  // namespace scaletrain::dist
