// Parts of the report page that are embedded in the program at build time, in its read-only data. A
// command that writes no page loads none of it.
#pragma once

#include <string_view>

namespace scaletrain::launcher {

struct PageAssets {
  std::string_view html;           // body of the page
  std::string_view style, script;  // launcher/commands/runs/page/
  std::string_view chart_style;    // dygraphs
  std::string_view chart_script;   // dygraphs, whose first line names its licence
  std::string_view chart_licence;  // text of its licence
};

PageAssets page_assets();

}  // namespace scaletrain::launcher
