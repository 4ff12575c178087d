// How both ends of a hub's connection set it up.
#pragma once

namespace scaletrain::dist {

// Small messages go at once, and a host that is gone without a word is noticed within half a
// minute.
void keep_alive(int fd);

}  // namespace scaletrain::dist
