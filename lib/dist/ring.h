// A ring of the ranks along an axis of the mesh: each sends to the next one and receives from the
// one before.
//
// Each of its connections is a group of two ranks with one direction, as those of a pipeline
// (lib/dist/pipe_links.h): the order of what goes over it is that of one sender.
#pragma once

#include "lib/dist/pipe_links.h"

namespace scaletrain::dist {

struct Ring {
  int place = 0, places = 1;  // this rank's place; number of places
  PipeLink from_before, to_next;
};

// Opens that of `axis`, along which there are several ranks; the mesh outlives it. Every rank
// calls it at once.
Ring open_ring(Mesh& mesh, core::Axis axis);

}  // namespace scaletrain::dist
