// A self-contained HTML page of a report: style, scripts and data are in the file.
#pragma once

#include <string>

#include "launcher/runs/run_record.h"

namespace scaletrain::launcher {

// `data` is report_data()'s. Texts of a run are embedded as JSON data, and a script inserts them as
// plain text, never as HTML; the page's Content-Security-Policy refuses every request.
std::string report_page(const RunJson& data);

}  // namespace scaletrain::launcher
