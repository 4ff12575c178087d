// A self-contained HTML page of a report: style, scripts and data are in the file.
#pragma once

#include <string>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// `data` is report_data()'s. Texts of runs are data of a script that shows them as text; the page's
// Content-Security-Policy refuses every request.
std::string report_page(const RunJson& data);

}  // namespace scaletrain::launcher
