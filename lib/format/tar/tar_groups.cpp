#include "lib/format/tar/tar_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "lib/format/tar/tar_links.h"
#include "lib/format/tar/tar_samples.h"

namespace scaletrain::format {

const TarField* TarGroup::find(const std::string& extension) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const TarField& field) {
    return field.extension == extension;
  });
  return found == fields.end() ? nullptr : &*found;
}

const TarField* TarGroup::image() const {
  const auto found = std::find_if(fields.begin(), fields.end(), [](const TarField& field) {
    return is_image_extension(field.extension);
  });
  return found == fields.end() ? nullptr : &*found;
}

std::int64_t for_each_group(const std::string& name, std::int64_t file_bytes, const ReadAt& read,
                            const std::function<bool(TarGroup)>& use) {
  TarReader reader(name, file_bytes, read);
  TarLinks links(name, file_bytes, read);
  TarGroup group;
  std::int64_t ignored = 0;
  while (auto member = reader.next()) {
    if (const auto link = member->regular ? std::nullopt : links.link_of(*member)) {
      if (auto file = links.resolve(*member, *link)) member = std::move(file);
    }
    auto parts = member->regular ? split_sample_name(member->path) : std::nullopt;
    if (!parts) {
      ++ignored;
      continue;
    }
    if (group.fields.empty() || parts->key != group.key) {
      if (!group.fields.empty() && !use(std::exchange(group, TarGroup()))) return ignored;
      group.key = std::move(parts->key);
    }
    group.fields.push_back({std::move(parts->extension), std::move(*member)});
  }
  if (!group.fields.empty()) use(std::move(group));
  return ignored;
}

std::vector<std::string> problems_of(const TarGroup& group) {
  std::vector<std::string> problems;
  std::set<std::string> seen;
  std::int64_t images = 0;
  for (const TarField& field : group.fields) {
    if (!seen.insert(field.extension).second) {
      problems.push_back(fmt::format(".{} occurs twice", shown_name(field.extension)));
    }
    images += is_image_extension(field.extension) ? 1 : 0;
  }
  if (images == 0) problems.emplace_back("no image");
  if (images > 1) problems.emplace_back("two images");
  if (seen.count("cls") == 0) problems.emplace_back("no label");
  return problems;
}

}  // namespace scaletrain::format
