// Opens the checkpoint that is given and tells what a stranger's program needs of each layer.
#include <cstdint>
#include <iostream>

#include <eckart/eckart.h>

namespace ek = eckart;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const ek::Checkpoint model = ek::open_checkpoint(argv[1]);
  std::cout << model.tensors().size() << " tensors, " << model.tensor_bytes() << " bytes\n";

  const ek::Tensor<float> norm = model.tensor<float>("model.norm.weight");
  std::cout << "model.norm.weight " << ek::to_string(norm.shape()) << '\n';

  const ek::Config config = ek::load_config(argv[1]);
  std::cout << config.model_type() << ", " << config.required_size({"num_hidden_layers"})
            << " layers\n";

  try {
    (void)ek::Shape({2, 3}).size("token");
  } catch (const ek::ShapeError& error) {
    std::cout << "an error reaches its catch\n";
    return 0;
  }
  return 1;
}
