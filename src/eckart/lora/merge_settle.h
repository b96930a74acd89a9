// The steps that end a plan, when it is known what changes which tensor. Included by the library
// alone.
#pragma once

#include "eckart/lora/merge_plan.h"
#include "eckart/lora/tied_embeddings.h"

#include <optional>

namespace eckart {

/// What each tensor is written as. A base of F8 with scales is written without them as soon as one
/// of its matrices changes; other quantized tensors are copied, part by part.
void settle_dtypes(const MergeSources& sources, const MergeRules& rules, MergePlan& plan);
/// Embedding and head have a row a token: throws when one grows alone.
void settle_vocabulary(const MergeSources& sources, const std::optional<TiedEmbeddings>& tied,
                       MergePlan& plan);
/// Throws when the result would be the base.
void check_something_changes(const MergeSources& sources, const MergePlan& plan);

}  // namespace eckart
