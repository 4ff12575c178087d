// Optimal checkpoint interval for a given rate of failures.
#pragma once

namespace scaletrain::core {

// Returns the time between two saves, in seconds, that loses the least training time to saving and
// to repeated work. A save takes `cost_s`; failures come every `mtbf_s` on average. The formula is
// the higher-order estimate of J. T. Daly, "A higher order estimate of the optimum checkpoint
// interval for restart dumps", Future Generation Computer Systems 22 (2006), equation 37; its first
// term is Young's (1974).
double best_interval(double cost_s, double mtbf_s);

}  // namespace scaletrain::core
