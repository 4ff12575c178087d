#include "launcher/commands/runs/report_page.h"

#include <string_view>

#include "launcher/commands/runs/page_assets.h"
#include "lib/core/text/json_text.h"

namespace scaletrain::launcher {
namespace {

// JSON in which no text can end the script element: "<", ">" and "&" are \u003c, \u003e, \u0026.
std::string json_for_script(const RunJson& data) {
  const std::string json = core::json_text(data);
  std::string text;
  text.reserve(json.size() + json.size() / 64);
  for (const char letter : json) {
    if (letter == '<') {
      text += "\\u003c";
    } else if (letter == '>') {
      text += "\\u003e";
    } else if (letter == '&') {
      text += "\\u0026";
    } else {
      text += letter;
    }
  }
  return text;
}

std::string element_of(std::string_view open, std::string_view content, std::string_view close) {
  return std::string(open) + std::string(content) + std::string(close) + "\n";
}

}  // namespace

std::string report_page(const RunJson& data) {
  const PageAssets assets = page_assets();
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>scaletrain report</title>\n";
  page += element_of("<style>\n", assets.chart_style, "</style>");
  page += element_of("<style>\n", assets.style, "</style>");
  page += "</head>\n<body>\n";
  page += assets.html;
  page += element_of("<details><summary>Licence of the charts</summary><pre>", assets.chart_licence,
                     "</pre></details>");
  page += element_of("<script type=\"application/json\" id=\"data\">", json_for_script(data),
                     "</script>");
  page += element_of("<script>\n", assets.chart_script, "</script>");
  page += element_of("<script>\n", assets.script, "</script>");
  return page + "</body>\n</html>\n";
}

}  // namespace scaletrain::launcher
