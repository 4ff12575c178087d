#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "app/data/data_stats.h"
#include "lib/core/text/markup.h"
#include "lib/core/text/text.h"
#include "lib/data/set/classes_file.h"

namespace scaletrain::app {
namespace {

constexpr std::size_t kShownClasses = 200;

std::string class_rows(const DataStats& stats, const std::vector<std::string>& classes) {
  std::int64_t most = 1;
  for (const auto& [label, count] : stats.by_class) most = std::max(most, count);
  std::string rows;
  std::size_t shown = 0;
  for (const auto& [label, count] : stats.by_class) {
    if (++shown > kShownClasses) {
      rows += fmt::format("<tr><td></td><td>and {} more</td></tr>\n",
                          stats.by_class.size() - kShownClasses);
      break;
    }
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td><div style=\"width:{}px\"></div></td></tr>\n",
        label, core::escape_html(data::class_name(classes, label)), count, 300 * count / most);
  }
  return rows;
}

std::string count_list(const std::map<std::string, std::int64_t>& counts) {
  constexpr std::size_t kShownCounts = 20;
  std::vector<std::pair<std::int64_t, std::string>> sorted;
  sorted.reserve(counts.size());
  for (const auto& [name, count] : counts) sorted.emplace_back(-count, name);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < sorted.size() && i < kShownCounts; ++i) {
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", core::escape_html(sorted[i].second),
                        -sorted[i].first);
  }
  if (sorted.size() > kShownCounts)
    text += fmt::format(" and {} more", sorted.size() - kShownCounts);
  return text;
}

std::string choice_of(const Sheet& sheet, std::int64_t samples) {
  const std::size_t shown = sheet.thumbnails.size();
  if (!sheet.has_all) {
    return fmt::format(
        "{} of {} samples: the first of each of the {} classes that come first in the shards",
        shown, samples, shown);
  }
  return fmt::format("{} of {} samples: the first {} of each class, in the order of the shards",
                     shown, samples, sheet.of_each);
}

}  // namespace

std::string stats_page(const std::string& title, const DataStats& stats,
                       const std::vector<std::string>& classes, const Sheet& sheet) {
  const auto mean = stats.mean(), deviation = stats.deviation();
  std::string page = fmt::format(
      "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>\n"
      "body {{font-family: sans-serif; margin: 2em}}\n"
      "th {{text-align: left; padding-right: 1em}}\n"
      "td div {{background: #48c; height: 0.8em}}\n"
      "figure {{display: inline-block; margin: 4px; width: 100px}}\n"
      "figcaption {{font-size: 70%; overflow: hidden; white-space: nowrap}}\n"
      "</style>\n<h1>{0}</h1>\n"
      "<p>{1} of {2}, {3:.1f} MB of images</p>\n"
      "<p>formats: {4}</p>\n<p>sizes: {5}</p>\n"
      "<p>mean {6:.4f}, {7:.4f}, {8:.4f}; deviation {9:.4f}, {10:.4f}, {11:.4f} (red, green, blue "
      "in 0..1)</p>\n",
      core::escape_html(title), core::counted(stats.samples, "sample"),
      core::counted(std::ssize(stats.by_class), "class"),
      static_cast<double>(stats.image_bytes) / 1e6, count_list(stats.by_format),
      count_list(stats.by_size), mean[0], mean[1], mean[2], deviation[0], deviation[1],
      deviation[2]);
  page += fmt::format(
      "<h2>Classes</h2>\n<table>\n<tr><th>number</th><th>class</th><th>samples</th><th>of the "
      "largest class</th></tr>\n{}</table>\n<h2>Samples</h2>\n<p>{}</p>\n",
      class_rows(stats, classes), choice_of(sheet, stats.samples));
  for (const Thumbnail& thumbnail : sheet.thumbnails) {
    page += fmt::format(
        "<figure><img alt=\"\" src=\"data:image/jpeg;base64,{}\"><figcaption>{}</figcaption>"
        "</figure>\n",
        core::base64(thumbnail.jpeg), core::escape_html(thumbnail.caption));
  }
  return page;
}

}  // namespace scaletrain::app
