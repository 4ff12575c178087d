#include "lib/report/mistakes_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/core/text/markup.h"
#include "lib/data/set/classes_file.h"

namespace scaletrain::report {
namespace {

constexpr std::int64_t kMostColumns = 100;  // a table of more classes is left out

std::string_view media_type(std::string_view extension) {
  if (extension == "jpg" || extension == "jpeg") return "image/jpeg";
  if (extension == "png") return "image/png";
  if (extension == "webp") return "image/webp";
  return "";
}

std::string name_of(const ClassReport& report, std::int64_t number) {
  return core::escape_html(data::class_name(report.names, number));
}

std::string picture(const ClassReport& report, const ShownPicture& shown) {
  const std::string_view type = media_type(shown.extension);
  const std::string image = type.empty() ? ""
                                         : fmt::format(R"(<img alt="" src="data:{};base64,{}">)",
                                                       type, core::base64(shown.bytes));
  const Guess& guess = shown.prediction.top.front();
  return fmt::format(
      "<figure>{}<figcaption><b>{}</b>, not {}<br>{:.1f} % sure<br>{}</figcaption></figure>\n",
      image, name_of(report, shown.prediction.label), name_of(report, guess.class_number),
      100 * guess.probability, core::escape_html(shown.key));
}

std::string confusion_table(const ClassReport& report) {
  const auto classes = static_cast<std::int64_t>(report.classes.size());
  if (classes > kMostColumns) return "";
  std::string text =
      "<h2>What is taken for what</h2>\n<p>A row is a class, a column what it was taken for.</p>\n"
      "<table>\n<tr><th></th>";
  for (std::int64_t i = 0; i < classes; ++i) {
    text += fmt::format("<th>{}</th>", name_of(report, i));
  }
  text += "</tr>\n";
  for (std::int64_t label = 0; label < classes; ++label) {
    text += fmt::format("<tr><th>{}</th>", name_of(report, label));
    for (std::int64_t predicted = 0; predicted < classes; ++predicted) {
      const auto found = report.confusion.find({label, predicted});
      if (found == report.confusion.end()) {
        text += "<td></td>";
        continue;
      }
      text += fmt::format(R"(<td class="{}">{}</td>)", label == predicted ? "right" : "wrong",
                          found->second);
    }
    text += "</tr>\n";
  }
  return text + "</table>\n";
}

}  // namespace

std::vector<std::size_t> worst_mistakes(const std::vector<Prediction>& predictions,
                                        std::size_t most) {
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (!predictions[i].is_right()) wrong.push_back(i);
  }
  std::stable_sort(wrong.begin(), wrong.end(), [&predictions](std::size_t a, std::size_t b) {
    return predictions[a].loss > predictions[b].loss;
  });
  if (wrong.size() > most) wrong.resize(most);
  return wrong;
}

std::string mistakes_page(const Evaluation& evaluation, const std::vector<ShownPicture>& pictures) {
  const ClassReport& report = *evaluation.classes;
  std::string page = fmt::format(
      "<!doctype html>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n<style>\n"
      "body {{font-family: sans-serif; margin: 2em}}\n"
      "figure {{display: inline-block; margin: 6px; width: 140px; vertical-align: top}}\n"
      "figure img {{width: 128px}}\n"
      "figcaption {{font-size: 75%; overflow: hidden}}\n"
      "td {{text-align: right; padding: 0 0.5em}}\n"
      ".right {{background: #cec}}\n.wrong {{background: #fcc}}\n"
      "</style>\n<h1>{0}</h1>\n<p>{1} of {2}:",
      core::escape_html(evaluation.set), core::escape_html(evaluation.checkpoint),
      evaluation.count);
  for (const auto& [measure, value] : evaluation.measures) {
    page += fmt::format(" {} {},", measure->label, measure->text(value));
  }
  page.back() = '.';
  page += fmt::format("</p>\n<h2>The {} that it gets most wrong</h2>\n", pictures.size());
  for (const ShownPicture& one : pictures) page += picture(report, one);
  return page + confusion_table(report);
}

}  // namespace scaletrain::report
