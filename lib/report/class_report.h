// Classifier report of an evaluation, beyond the task's measures: accuracy of each class, confusion
// matrix and calibration.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lib/report/calibration.h"
#include "lib/report/prediction.h"

namespace scaletrain::report {

struct ClassCount {
  std::int64_t count = 0, right = 0;
};

struct ClassReport {
  std::vector<std::string> names;  // class names; may be empty
  std::vector<ClassCount> classes;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> confusion;  // {label, predicted}
  Calibration calibration;
};

ClassReport make_class_report(const Predictions::All& all, std::int64_t num_classes,
                              std::vector<std::string> names);

}  // namespace scaletrain::report
