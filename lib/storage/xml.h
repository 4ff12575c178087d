// Minimal XML reader for S3's responses: finds elements by name and ignores attributes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::storage {

// Returns the content of each <name> element, in order. Nested elements of the same name do not
// occur in S3's responses.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);

// Returns the text of the first element `name` with entities replaced; "" if there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace scaletrain::storage
