#include "launcher/commands/lr_find/range_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/core/text/markup.h"

namespace scaletrain::launcher {
namespace {

constexpr double kWidth = 720, kHeight = 400;
constexpr double kLeft = 70, kRight = 700, kTop = 50, kBottom = 340;
constexpr int kLossLines = 4;  // intervals between horizontal grid lines

constexpr const char* kStyle =
    "<style>text{font:13px sans-serif;fill:#222}.grid{stroke:#ddd}.dot{fill:#8aa7c7}"
    ".line{fill:none;stroke:#1f5fa8;stroke-width:2}.mark{stroke:#b4420f;stroke-dasharray:5 4}"
    ".page{fill:#fff}.note{fill:#b4420f}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#444}.dot{fill:#54708f}"
    ".line{stroke:#7db4f0}.mark{stroke:#f0935f}.page{fill:#181818}.note{fill:#f0935f}}</style>\n";

// Places learning rates and losses on the picture.
class Axes {
 public:
  explicit Axes(const std::vector<RangePoint>& shown) {
    first_ = std::log10(shown.front().lr);
    last_ = std::log10(shown.back().lr);
    const auto [low, high] = std::minmax_element(
        shown.begin(), shown.end(),
        [](const RangePoint& a, const RangePoint& b) { return a.loss < b.loss; });
    constexpr double kRoom = 0.08;  // of the losses, below and above the curve
    const double room = std::max((high->loss - low->loss) * kRoom, 1e-9);
    low_ = low->loss - room;
    high_ = high->loss + room;
    if (last_ <= first_) last_ = first_ + 1;
  }

  double x(double lr) const {
    return kLeft + (std::log10(lr) - first_) / (last_ - first_) * (kRight - kLeft);
  }
  double y(double loss) const {
    return kBottom - (loss - low_) / (high_ - low_) * (kBottom - kTop);
  }
  bool shows(const RangePoint& point) const {
    return point.loss >= low_ && point.loss <= high_ && std::log10(point.lr) <= last_;
  }

  std::string grid() const {
    std::string text;
    for (int decade = static_cast<int>(std::ceil(first_ - 1e-9)); decade <= last_ + 1e-9;
         ++decade) {
      const double at = x(std::pow(10.0, decade));
      text += fmt::format(R"(<line class="grid" x1="{0:.1f}" y1="{1}" x2="{0:.1f}" y2="{2}"/>)"
                          "\n"
                          R"(<text x="{0:.1f}" y="{3}" text-anchor="middle">1e{4}</text>)"
                          "\n",
                          at, kTop, kBottom, kBottom + 20, decade);
    }
    for (int i = 0; i <= kLossLines; ++i) {
      const double loss = low_ + (high_ - low_) * i / kLossLines;
      text += fmt::format(R"(<line class="grid" x1="{0}" y1="{1:.1f}" x2="{2}" y2="{1:.1f}"/>)"
                          "\n"
                          R"(<text x="{3}" y="{4:.1f}" text-anchor="end">{5:.3g}</text>)"
                          "\n",
                          kLeft, y(loss), kRight, kLeft - 8, y(loss) + 4, loss);
    }
    return text;
  }

 private:
  double first_ = 0, last_ = 1;  // base-10 logarithms of learning rates
  double low_ = 0, high_ = 1;    // losses
};

std::string curves(const Axes& axes, const std::vector<RangePoint>& points,
                   const std::vector<RangePoint>& shown) {
  std::string text, path;
  for (const RangePoint& point : points) {
    if (!axes.shows(point)) continue;
    text += fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2\"/>\n",
                        axes.x(point.lr), axes.y(point.loss));
  }
  for (const RangePoint& point : shown) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", axes.x(point.lr),
                        axes.y(point.loss));
  }
  return text + fmt::format("<path class=\"line\" d=\"{}\"/>\n", path);
}

std::string mark(const Axes& axes, double lr) {
  const double at = axes.x(lr);
  const bool is_right = at > (kLeft + kRight) / 2;  // the text is then on the left of the line
  return fmt::format(
      "<line class=\"mark\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n"
      "<text class=\"note\" x=\"{3:.1f}\" y=\"{4}\" text-anchor=\"{5}\">steepest: {6:.2g}</text>\n",
      at, kTop, kBottom, is_right ? at - 6 : at + 6, kTop + 14, is_right ? "end" : "start", lr);
}

}  // namespace

std::string range_picture(const std::string& title, const std::vector<RangePoint>& points,
                          const std::vector<double>& smoothed,
                          const std::optional<RateSuggestion>& suggestion) {
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" role=\"img\">\n{2}<rect class=\"page\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text x=\"{3}\" y=\"28\" font-weight=\"bold\">{4}</text>\n",
      kWidth, kHeight, kStyle, kLeft, core::escape_html(title));
  const std::vector<RangePoint> shown = shown_points(points, smoothed);
  if (!shown.empty()) {
    const Axes axes(shown);
    text += axes.grid() + curves(axes, points, shown);
    if (suggestion) text += mark(axes, suggestion->steepest);
  }
  text += fmt::format(
      "<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">learning rate (dots: loss of a step, "
      "line: smoothed loss)</text>\n</svg>\n",
      (kLeft + kRight) / 2, kHeight - 15);
  return text;
}

}  // namespace scaletrain::launcher
