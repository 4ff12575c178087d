#include "launcher/commands/prove/tolerances.h"

#include <map>

namespace scaletrain::launcher {

SumOrder sum_order(const std::string& precision, bool has_batch_norm) {
  if (has_batch_norm) return {.precision = "fp64", .tolerance = 1e-4};
  if (precision == "fp64") return {.precision = "fp64", .tolerance = 1e-12};
  return {.precision = "fp32", .tolerance = 1e-6};
}

double compression_tolerance(const std::string& method) {
  constexpr double kLowRank = 0.2;  // powersgd, onebit
  static const std::map<std::string, double> table{{"fp16", 2e-3}, {"bf16", 0.01}, {"int8", 0.02}};
  const auto found = table.find(method);
  return found == table.end() ? kLowRank : found->second;
}

}  // namespace scaletrain::launcher
