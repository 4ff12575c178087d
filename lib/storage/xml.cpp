#include "lib/storage/xml.h"

#include <algorithm>
#include <array>
#include <utility>

namespace scaletrain::storage {
namespace {

constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};

std::string without_entities(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const auto* const entity =
        std::find_if(kEntities.begin(), kEntities.end(),
                     [text](const auto& known) { return text.starts_with(known.first); });
    const bool found = entity != kEntities.end();
    result += found ? entity->second : text[0];
    text.remove_prefix(found ? entity->first.size() : 1);
  }
  return result;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name) {
  const std::string open = "<" + std::string(name);
  const std::string close = "</" + std::string(name) + ">";
  std::vector<std::string_view> found;
  for (std::size_t at = xml.find(open); at != std::string_view::npos; at = xml.find(open, at)) {
    at += open.size();
    const std::size_t begin = xml.find('>', at);
    if (begin == std::string_view::npos) break;
    const bool is_longer_name = xml[at] != '>' && xml[at] != ' ' && xml[at] != '/';
    if (is_longer_name || xml[begin - 1] == '/') continue;
    const std::size_t end = xml.find(close, begin);
    if (end == std::string_view::npos) break;
    found.push_back(xml.substr(begin + 1, end - begin - 1));
    at = end;
  }
  return found;
}

std::string xml_text(std::string_view xml, std::string_view name) {
  const auto found = xml_elements(xml, name);
  return found.empty() ? "" : without_entities(found.front());
}

}  // namespace scaletrain::storage
