// The little XML that S3 answers with: elements without attributes that matter, found by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scaletrain::storage {

// Returns the content of each <name> element, in order. Nested elements of the same name do not
// occur in S3's responses.
std::vector<std::string_view> xml_elements(std::string_view xml, std::string_view name);

// The text of the first element `name`, entities replaced; "" where there is none.
std::string xml_text(std::string_view xml, std::string_view name);

}  // namespace scaletrain::storage
