// The whole library.
#pragma once

// IWYU pragma: begin_exports
#include "eckart/core/broadcast.h"
#include "eckart/core/errors.h"
#include "eckart/core/parallel.h"
#include "eckart/core/random.h"
#include "eckart/core/shape.h"
#include "eckart/core/tensor.h"
#include "eckart/core/tensor_view.h"
#include "eckart/io/checkpoint.h"
#include "eckart/io/dtype.h"
#include "eckart/io/npy.h"
#include "eckart/io/npz.h"
#include "eckart/io/safetensors.h"
#include "eckart/io/scan.h"
#include "eckart/io/validate.h"
#include "eckart/io/widen.h"
#include "eckart/model/architecture.h"
#include "eckart/model/config.h"
#include "eckart/model/count.h"
#include "eckart/model/cross_check.h"
#include "eckart/model/fit.h"
#include "eckart/model/logical_tensors.h"
#include "eckart/model/match_specs.h"
#include "eckart/model/quantization.h"
#include "eckart/model/summary.h"
// IWYU pragma: end_exports
