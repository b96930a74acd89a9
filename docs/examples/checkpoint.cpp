#include <iostream>

#include <eckart/eckart.h>

namespace ek = eckart;

int main() {
  const ek::Checkpoint model = ek::open_checkpoint("examples/tiny-llama");  // mapped, read-only
  const ek::Tensor<float> w_up =
      model.tensor<float>("model.layers.3.mlp.up_proj.weight").named({"d_ff", "d_model"});
  std::cout << ek::to_string(w_up.shape()) << '\n';  // 288x128 (d_ff, d_model)

  const ek::TensorView<const float> row = w_up.view().select("d_ff", 7);  // no copy
  std::cout << row.size("d_model") << " numbers, the first " << row(0) << '\n';

  const ek::Architecture llama = ek::read_architecture(ek::load_config("examples/tiny-llama"));
  const ek::Count cost = ek::count(llama, {.context = 128, .batch = 4});
  std::cout << cost.parameters.total << " parameters, " << cost.kv_cache.bytes_at_context
            << " bytes of KV cache, " << cost.flops.forward << " FLOPs\n";

  const ek::LowRank<float> approx = ek::low_rank(w_up, {.rank = 8, .seed = 7});
  std::cout << approx.relative_error << '\n';  // ||W - B A||_F / ||W||_F, computed

  const ek::Svd<float> svd = ek::svd(w_up);  // struct {u, s, vt}
  std::cout << ek::to_string(svd.u.shape()) << '\n';

  try {
    ek::broadcast_shape({32, 512}, {32}, {.operation = "add", .left = "x", .right = "bias"});
  } catch (const ek::ShapeError& error) {
    std::cout << error.what() << '\n';
  }
}
