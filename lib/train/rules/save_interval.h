// How often to save where failures come now and then.
#pragma once

namespace scaletrain::train {

// Seconds of training between two saves by which the least time is lost, to saves of `cost_s` and
// to work done again after a failure, one in `mtbf_s` on average: the higher-order estimate of
// J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// Future Generation Computer Systems 22 (2006), equation 37; its first term is Young's (1974).
double best_interval(double cost_s, double mtbf_s);

}  // namespace scaletrain::train
