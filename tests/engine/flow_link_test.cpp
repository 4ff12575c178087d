#include "lib/engine/flow_link.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

#include "tests/dist/ranks.h"

namespace scaletrain::engine {
namespace {

using namespace std::chrono_literals;

// What rank 0 gives to rank 1: images whose channels lie last, integers, and a sum.
units::Flow flow_of(double value) {
  return {at::full({2, 3, 4, 4}, value).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_(),
          at::full({2}, static_cast<std::int64_t>(value), at::kLong),
          at::full({}, value, at::kBFloat16)};
}

std::string text_of(const units::Flow& flow) {
  std::string text;
  for (const at::Tensor& tensor : flow) {
    text += fmt::format(
        "{} {}{}{}{} ", c10::toString(tensor.scalar_type()), tensor.mean(at::kFloat).item<float>(),
        tensor.dim() == 4 ? fmt::format(" {}", tensor[0][0][0][1].item<float>()) : "",
        tensor.requires_grad() ? " wants" : "",
        tensor.dim() == 4 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast) ? " channels last"
                                                                                  : "");
  }
  return text;
}

}  // namespace

TEST_CASE("a flow arrives as it was, and its gradients go back") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(2, {.pipe = 2, .replica = {}}));
    dist::PipeLinks links = dist::open_pipe_links(mesh);
    std::string text;
    if (env.rank == 0) {
      FlowLink out(links.activations_out);
      out.send("train", flow_of(1));
      const FlowShape& shape = out.send("train", flow_of(2));
      // Another stride than the first one's is copied.
      const at::Tensor numbers = at::arange(96, at::kFloat).view({2, 3, 4, 4}).requires_grad_();
      out.send("train", {numbers, flow_of(3)[1], flow_of(3)[2]});
      const units::Flow gradients = receive_gradients(links.gradients_in, shape);
      text = fmt::format("{} gradients: {}", gradients.size(), text_of(gradients));
      out.link().flush();
    } else {
      FlowLink in(links.activations_in);
      const units::Flow first = in.receive("train");
      text = text_of(first);
      for (int i = 1; i < 3; ++i) text += text_of(in.receive("train"));
      (first[0] * 5).sum().backward();
      send_gradients(links.gradients_out, first);
      links.gradients_out.flush();
    }
    mesh.end("end");
    return text;
  });
  CHECK(results[0].text == "1 gradients: Float 5 5 channels last ");
  CHECK(results[1].text ==
        "Float 1 1 wants channels last Long 1 BFloat16 1 "
        "Float 2 2 wants channels last Long 2 BFloat16 2 "
        "Float 47.5 1 wants channels last Long 3 BFloat16 3 ");
}

TEST_CASE("a flow of another shape under the same name is refused") {
  const auto results = testing::run_ranks({.world_size = 2}, [](const core::WorkerEnv& env) {
    dist::Group world(env, at::kCPU, 30s);
    dist::Mesh mesh(world, core::MeshPlan(2, {.pipe = 2, .replica = {}}));
    dist::PipeLinks links = dist::open_pipe_links(mesh);
    if (env.rank == 1) {
      FlowLink(links.activations_in).receive("a");
      return std::string();
    }
    FlowLink out(links.activations_out);
    out.send("a", {at::zeros({2})});
    out.send("a", {at::zeros({3})});
    return std::string();
  });
  CHECK(results[0].text == "pipeline: the shapes of activations have changed");
}

}  // namespace scaletrain::engine
