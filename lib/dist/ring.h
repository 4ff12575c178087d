// A ring of the ranks along an axis of the mesh: each sends to the next and receives from the
// previous one.
//
// Each connection is a group of two ranks with one direction, as in a pipeline
// (lib/dist/pipe_links.h), so that the order of messages is that of one sender.
#pragma once

#include "lib/dist/pipe_links.h"

namespace scaletrain::dist {

struct Ring {
  int place = 0, places = 1;  // this rank's place; number of places
  PipeLink from_before, to_next;
};

// Opens the ring along `axis`, which has several ranks; the mesh must outlive it. All ranks call it
// at once.
Ring open_ring(Mesh& mesh, core::Axis axis);

}  // namespace scaletrain::dist
