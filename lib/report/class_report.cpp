#include "lib/report/class_report.h"

namespace scaletrain::report {

ClassReport make_class_report(const Predictions::All& all, std::int64_t num_classes,
                              std::vector<std::string> names) {
  ClassReport report;
  report.names = std::move(names);
  report.classes.resize(static_cast<std::size_t>(num_classes));
  for (const Prediction& one : all.predictions) {
    ClassCount& counted = report.classes[static_cast<std::size_t>(one.label)];
    ++counted.count;
    if (one.is_right()) ++counted.right;
    ++report.confusion[{one.label, one.top.front().class_number}];
  }
  if (!all.predictions.empty()) report.calibration = calibrate(all.logits, all.labels);
  return report;
}

}  // namespace scaletrain::report
