// Finds slow ranks while training goes on: every ten steps the ranks exchange their own times.
#pragma once

#include <vector>

#include "lib/core/beat.h"
#include "lib/dist/group.h"
#include "lib/observe/stragglers.h"

namespace scaletrain::train {

class StragglerWatch {
 public:
  // Both must outlive it.
  StragglerWatch(dist::Group& group, core::Beat& beat) : group_(group), beat_(beat) {}

  // After every step; every rank calls it. Ranks that are told are told on all ranks.
  std::vector<observe::Straggler> step();

 private:
  dist::Group& group_;
  core::Beat& beat_;
  int steps_ = 0;
  observe::Stragglers stragglers_;
};

}  // namespace scaletrain::train
